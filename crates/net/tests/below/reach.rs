//! Where a server may send us: T40. A canary counts who comes.

use std::net::IpAddr;

use wharf_net::{AddressPolicy, Net, NetOptions, SendError};
use wharf_spec::Secret;
use wharf_testkit::transport_faults::{ConnectProxy, ProxyBehaviour, serve_plain};

use crate::served::answering;
use crate::{exchange, open_with};

async fn public_only(proxy: Option<String>) -> Net {
    let mut options = NetOptions::default();
    options.reach = AddressPolicy::PublicOnly;
    options.proxy = proxy.map(Secret::new);
    open_with(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t40_loopback_is_blocked_in_every_spelling() {
    let canary = serve_plain().unwrap();
    let port = canary.address().port();
    let net = public_only(None).await;
    for host in ["127.0.0.1", "127.1", "0x7f.1", "0177.1", "2130706433", "0", "[::1]", "[::ffff:127.0.0.1]", "[::]"] {
        let error = exchange(&net, &format!("http://{host}:{port}/mcp")).await.unsent();
        assert!(matches!(error, SendError::Blocked(_)), "{host}: {error:?}");
        assert!(error.is_certainly_unsent() && !error.is_transient(), "{host}: {error:?}");
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t40_host_name_is_blocked_by_its_resolved_address() {
    let canary = serve_plain().unwrap();
    let url = format!("http://localhost:{}/mcp", canary.address().port());
    let error = exchange(&public_only(None).await, &url).await.unsent();
    let SendError::Blocked(address) = &error else { panic!("{error:?}") };
    assert!(address.is_loopback(), "{error:?}");
    assert_eq!(error.to_string(), format!("connections to {address} are not allowed"));
    assert_eq!(canary.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t40_redirect_to_blocked_address_is_not_followed() {
    // A public address that is really the proxy's to reach, so that nothing leaves this machine.
    let canary = serve_plain().unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]", "169.254.169.254"] {
        for status in [302, 307, 308] {
            let location = format!("http://{host}:{}/mcp", canary.address().port());
            let server = answering(move |_| {
                format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
            });
            let proxy = ConnectProxy::start(ProxyBehaviour::Works(server.address())).unwrap();
            // The proxy itself may be anywhere: whoever owns this program named it.
            let net = public_only(Some(format!("http://localhost:{}", proxy.address().port()))).await;
            let error = exchange(&net, "http://8.8.8.8/mcp").await.unsent();
            assert!(matches!(error, SendError::Redirected { .. }), "{host} {status}: {error:?}");
            assert_eq!((proxy.requests().len(), server.requests()), (1, 1), "{host} {status}");
        }
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t40_proxy_does_not_bypass_the_address_policy() {
    let canary = serve_plain().unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Works(canary.address())).unwrap();
    let net = public_only(Some(format!("http://{}", proxy.address()))).await;
    for (scheme, host) in [("http", "127.0.0.1"), ("https", "10.0.0.1"), ("http", "localhost"), ("https", "localhost")]
    {
        let error = exchange(&net, &format!("{scheme}://{host}:{}/mcp", canary.address().port())).await.unsent();
        assert!(matches!(error, SendError::Blocked(address) if !is_public(address)), "{scheme} {host}: {error:?}");
    }
    assert_eq!((proxy.requests().len(), canary.connections()), (0, 0));
}

fn is_public(address: IpAddr) -> bool {
    AddressPolicy::PublicOnly.allows(address)
}
