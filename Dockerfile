# A static binary, nothing else, not root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build && mkdir /data

FROM scratch
COPY --from=build /src/bin/headgate /headgate
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/headgate"]
# The admin API stays on loopback inside the container; publish it on purpose or not at all.
CMD ["serve", "--data", "/data", "--set", "http.listen=0.0.0.0:8080"]
