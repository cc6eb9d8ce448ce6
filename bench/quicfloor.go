package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// bareProtocol is what the bare receiver of streams calls itself in TLS.
const bareProtocol = "bench"

// runQUICFloor serves the least that a receiver over QUIC does, with quic-go's defaults: it copies streams into memory that
// it does not look at, and says with one byte that it has all; or reads the bodies of HTTP/3 requests and answers.
func runQUICFloor(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet("quicfloor", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	secure, err := selfSigned()
	if err != nil {
		return err
	}
	secure.NextProtos = []string{bareProtocol, http3.NextProtoH3}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer conn.Close()
	transport := &quic.Transport{Conn: conn}
	defer transport.Close()
	listener, err := transport.Listen(secure, &quic.Config{MaxIncomingStreams: 1000})
	if err != nil {
		return err
	}
	fmt.Println(conn.LocalAddr())
	requests := &http3.Server{Handler: http.HandlerFunc(answerBare)}
	var serving sync.WaitGroup
	for {
		peer, err := listener.Accept(ctx)
		if err != nil {
			break
		}
		if peer.ConnectionState().TLS.NegotiatedProtocol == bareProtocol {
			serving.Go(func() { copyStreams(ctx, peer) })
		} else {
			serving.Go(func() { requests.ServeQUICConn(peer) })
		}
	}
	transport.Close()
	serving.Wait()
	return nil
}

func answerBare(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	said := []byte(strconv.Itoa(len(body)))
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(said))}
	w.Header()["Content-Type"] = []string{"text/plain"}
	w.Write(said)
}

func copyStreams(ctx context.Context, conn *quic.Conn) {
	for {
		str, err := conn.AcceptStream(ctx)
		if err != nil {
			return
		}
		go func() {
			var first [512]byte // one that stalls holds no more
			if _, err := io.ReadFull(str, first[:]); err == nil {
				io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{str}, make([]byte, 64<<10))
			}
			str.Write([]byte{1})
			str.Close()
		}()
	}
}

// selfSigned makes a certificate that nobody need trust.
func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}, nil
}
