package sip

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	gosip "github.com/emiago/sipgo/sip"
)

// dialog is the peer-to-peer relation of RFC 3261 section 12: who we are to each other
// and which way requests go. It is a value; Call guards the current one.
type dialog struct {
	callID    string
	local     gosip.FromHeader // us, as From
	remote    gosip.ToHeader   // the peer, as To
	localTag  string
	remoteTag string
	target    gosip.Uri   // the peer's Contact
	routes    []gosip.Uri // in the order requests visit them
	hop       hop
}

// dialogFromResponse is the UAC's side (RFC 3261 section 12.1.2): the route set is the
// Record-Route reversed.
func dialogFromResponse(res *gosip.Response, h hop) dialog {
	d := dialog{callID: res.CallID().Value(), local: *res.From(), remote: *res.To(), hop: h}
	d.localTag, d.remoteTag = tagOf(d.local.Params), tagOf(d.remote.Params)
	d.target = res.To().Address
	if c := res.Contact(); c != nil {
		d.target = *c.Address.Clone()
	}
	d.routes = recordRoutes(res)
	slices.Reverse(d.routes)
	return d
}

// dialogFromRequest is the UAS's side (RFC 3261 section 12.1.1).
func dialogFromRequest(req *gosip.Request, localTag string) dialog {
	from, to := req.From(), req.To()
	d := dialog{callID: req.CallID().Value(), localTag: localTag, remoteTag: tagOf(from.Params)}
	d.local = gosip.FromHeader{DisplayName: to.DisplayName, Address: *to.Address.Clone()}
	d.local.Params.Add("tag", localTag)
	d.remote = gosip.ToHeader{DisplayName: from.DisplayName, Address: *from.Address.Clone(), Params: from.Params.Clone()}
	d.target = *from.Address.Clone()
	if c := req.Contact(); c != nil {
		d.target = *c.Address.Clone()
	}
	d.routes = recordRoutes(req)
	return d
}

func recordRoutes(msg gosip.Message) (routes []gosip.Uri) {
	for _, h := range msg.GetHeaders("Record-Route") {
		if rr, ok := h.(*gosip.RecordRouteHeader); ok {
			routes = append(routes, *rr.Address.Clone())
		}
	}
	return routes
}

// locate finds the next hop of the dialog's requests (RFC 3261 section 12.2.1.1). seen
// is where the peer's last message came from: a peer whose Contact is a private address
// though it speaks from a public one is behind a NAT, and is reached where it speaks from.
func (a *Agent) locate(ctx context.Context, d *dialog, seen netip.AddrPort) error {
	next := d.target
	if len(d.routes) > 0 {
		next = d.routes[0]
	}
	network := d.hop.network
	if t, ok := next.UriParams.Get("transport"); ok && t != "" {
		network = strings.ToLower(t)
	}
	if next.IsEncrypted() {
		network = "tls"
	}
	if literal, err := netip.ParseAddr(strings.Trim(next.Host, "[]")); err == nil && len(d.routes) == 0 &&
		literal.IsPrivate() && seen.IsValid() && !seen.Addr().IsPrivate() && !seen.Addr().IsLoopback() {
		h, ok := a.hopVia(network, seen)
		if ok {
			d.hop = h
			return nil
		}
	}
	h, err := a.hopTo(ctx, network, next.Host, next.Port)
	if err != nil {
		return err
	}
	d.hop = h
	return nil
}

// request makes a request inside the dialog.
func (d *dialog) request(a *Agent, method gosip.RequestMethod, cseq uint32, contact string) *gosip.Request {
	recipient, routes := d.target, d.routes
	if len(routes) > 0 && !routes[0].UriParams.Has("lr") {
		// A strict router wants itself in the request line and the target at the end.
		recipient = routes[0]
		routes = append(slices.Clone(routes[1:]), d.target)
	}
	req := gosip.NewRequest(method, recipient)
	for _, route := range routes {
		req.AppendHeader(&gosip.RouteHeader{Address: route})
	}
	local, remote := d.local, d.remote
	local.Params, remote.Params = local.Params.Clone(), remote.Params.Clone()
	req.AppendHeader(&local)
	req.AppendHeader(&remote)
	d.common(a, req, cseq, contact)
	return req
}

// common adds what every request of a dialog has.
func (d *dialog) common(a *Agent, req *gosip.Request, cseq uint32, contact string) {
	id := gosip.CallIDHeader(d.callID)
	forwards := gosip.MaxForwardsHeader(70)
	req.AppendHeader(&id)
	req.AppendHeader(&gosip.CSeqHeader{SeqNo: cseq, MethodName: req.Method})
	req.AppendHeader(&forwards)
	c := d.hop.contact(contact)
	req.AppendHeader(&c)
	req.AppendHeader(gosip.NewHeader("User-Agent", a.settings.Product))
	req.SetBody(nil)
	d.hop.prepare(req)
}

// ack makes the ACK of a 2xx: a transaction of its own, with the INVITE's number and
// credentials (RFC 3261 sections 13.2.2.4 and 22.1).
func (d *dialog) ack(a *Agent, invite *gosip.Request, contact string, body []byte) *gosip.Request {
	ack := d.request(a, gosip.ACK, invite.CSeq().SeqNo, contact)
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, h := range invite.GetHeaders(name) {
			ack.AppendHeader(gosip.HeaderClone(h))
		}
	}
	setBody(ack, "application/sdp", body)
	return ack
}
