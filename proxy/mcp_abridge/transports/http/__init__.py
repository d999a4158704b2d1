"""Parts that both sides of HTTP share: headers, bodies, negotiation, server-sent events."""
