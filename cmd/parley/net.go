package main

import (
	"net"
	"net/http"
	"net/url"
	"time"
)

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func hostOfURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// healthy says whether a Parley answers at an address.
func healthy(hostPort string) bool {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get("http://" + hostPort + "/healthz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK && response.Header.Get("X-Request-Id") != ""
}
