package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// bearer is the token of the Authorization header (RFC 6750, 2.1).
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// unauthenticated answers a missing, unknown and revoked token alike.
func unauthenticated(w *answerWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.message(http.StatusUnauthorized, "Unauthenticated.")
}

// clientAddress is who is calling: the peer, or whom a trusted proxy speaks for.
// Of a chain of proxies the last address that is not a trusted proxy's counts;
// everything before it could have been made up.
func (s *Server) clientAddress(r *http.Request) string {
	peer := hostOf(r.RemoteAddr)
	if !s.trusted(peer) {
		return peer
	}
	chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(chain) {
		address := strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(address); err != nil {
			break
		}
		peer = address
		if !s.trusted(address) {
			break
		}
	}
	return peer
}

func (s *Server) trusted(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, network := range s.config.TrustedProxies {
		if network.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}

func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return hostPort
	}
	return host
}

// baseURL is the address users reach the server by, without a final slash.
func (s *Server) baseURL(r *http.Request) string {
	if s.config.PublicURL != "" {
		return strings.TrimSuffix(s.config.PublicURL, "/")
	}
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if s.trusted(hostOf(r.RemoteAddr)) {
		if forwarded := r.Header.Get("X-Forwarded-Proto"); forwarded == "https" || forwarded == "http" {
			scheme = forwarded
		}
		if forwarded := r.Header.Get("X-Forwarded-Host"); forwarded != "" {
			host = forwarded
		}
	}
	return scheme + "://" + host
}
