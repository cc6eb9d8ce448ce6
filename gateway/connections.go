package gateway

// reservedFiles is how many open files are kept from clients: the stores, the backends and the admin API need theirs when
// clients take all they can get.
const reservedFiles = 1000

// sockets is how many connections clients may have over TCP where so many files may be open and most are configured. Those over QUIC
// have one socket together.
func sockets(most, files int) int {
	return min(most, max(files-reservedFiles, files/2))
}

// sockets is what the ingest listeners may have open, and says so when it is less than is configured.
func (g *Gateway) sockets() int {
	most := g.cfg.HTTP.MaxConnections
	files, known := openFiles()
	if !known || most <= 0 {
		return most
	}
	n := sockets(most, files)
	if n < most {
		g.log.Warn("fewer connections are taken over TCP than http.max_connections: raise the limit of open files (ulimit -n)",
			"connections", n, "max_connections", most, "open_files", files)
	}
	return n
}
