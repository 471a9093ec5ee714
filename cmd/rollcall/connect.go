package main

import (
	"context"

	"github.com/rollcall-k8s/rollcall/internal/kube"
)

// connect opens the connection that the flags ask for and waits for the API
// server's first answer, which sets the clock that everything is judged by.
func (a *app) connect(ctx context.Context) (*kube.Connection, error) {
	conn, err := kube.Open(&a.kube, kube.Options{Version: version, Logger: a.logger})
	if err != nil {
		return nil, err
	}
	if err := conn.Prime(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
