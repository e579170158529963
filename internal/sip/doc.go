// Package sip is Parley's SIP user agent: it places and answers calls over UDP, TCP
// and TLS, keeps trunks registered and watched, negotiates media descriptions, and
// turns strangers away.
//
// Messages, transports and transactions (RFC 3261 sections 7, 17 and 18) are sipgo's.
// Dialogs are this package's own: it must acknowledge every repeated 2xx, end forked
// answers, and keep CANCEL and 200 apart when they cross, and it has to own the state
// that decides these.
//
// It knows no RTP socket, no database and no assistant. Media comes in as plain values
// (Media) and goes out as negotiated ones (Session).
package sip
