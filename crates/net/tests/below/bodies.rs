//! Answers whose body is not what it says: H14, H28 and what is too large.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use wharf_net::BodyError;
use wharf_testkit::transport_faults::{ByteFault, Direction, FaultPosition, FaultProxy, FaultRule, serve_plain};

use crate::memory::bounded;
use crate::served::{answer, answering, saying};
use crate::{LIMIT, Outcome, exchange, open, plain};

fn zipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_incomplete_body_is_an_error() {
    let cases: &[(&str, Vec<u8>)] = &[
        ("a length too long", answer("Content-Length: 10\r\n", b"{\"a\":1}")),
        ("a chunk too long", answer("Transfer-Encoding: chunked\r\n", b"a\r\n{\"a\":1}\r\n0\r\n\r\n")),
        ("a chunk too short", answer("Transfer-Encoding: chunked\r\n", b"2\r\n{\"a\":1}\r\n0\r\n\r\n")),
        ("no last chunk", answer("Transfer-Encoding: chunked\r\n", b"7\r\n{\"a\":1}\r\n")),
        ("no end of the last chunk", answer("Transfer-Encoding: chunked\r\n", b"7\r\n{\"a\":1}\r\n0\r\n")),
        ("no number", answer("Transfer-Encoding: chunked\r\n", b"seven\r\n{\"a\":1}\r\n0\r\n\r\n")),
        ("no CR", answer("Transfer-Encoding: chunked\r\n", b"7\n{\"a\":1}\n0\n\n")),
        ("a size beyond numbers", answer("Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\n{\"a\":1}\r\n")),
        ("the largest size", answer("Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\n{\"a\":1}\r\n")),
        ("a negative size", answer("Transfer-Encoding: chunked\r\n", b"-7\r\n{\"a\":1}\r\n0\r\n\r\n")),
    ];
    for (what, bytes) in cases {
        let server = saying(bytes.clone());
        let error = exchange(&open().await, &plain(server.address())).await.unread();
        assert!(matches!(error, BodyError::Broken(_)), "{what}: {error:?}");
        assert!(error.to_string().starts_with("the response was interrupted: "), "{what}: {error}");
        assert_eq!((server.requests(), server.connections()), (1, 1), "{what} was asked for again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_bytes_after_the_body_are_not_the_next_response() {
    // Two answers at once: the second must not be waiting for the next request.
    let forged = [answer("Content-Length: 2\r\n", b"{}"), answer("Content-Length: 8\r\n", b"\"forged\"")].concat();
    let server = saying(forged);
    let net = open().await;
    for _ in 0..5 {
        let outcome = exchange(&net, &plain(server.address())).await;
        assert_eq!(outcome, Outcome::Answered(wharf_net::StatusCode::OK, "{}".into()));
    }
    assert_eq!(server.connections(), 5, "a connection with something unasked for on it was used again");
}

#[tokio::test(flavor = "multi_thread")]
async fn h14_response_cut_at_any_byte_is_an_error() {
    let server = serve_plain().unwrap();
    let whole = FaultProxy::start(server.address(), wharf_testkit::transport_faults::FaultScript::default()).unwrap();
    assert!(exchange(&open().await, &plain(whole.address())).await.is_healthy("hello"));
    let length = whole.traffic().to_client;
    for fault in [ByteFault::Cut, ByteFault::Close] {
        let proxy =
            FaultProxy::start(server.address(), wharf_testkit::transport_faults::FaultScript::default()).unwrap();
        for at in (0..length).step_by(7) {
            let before = server.requests();
            proxy.set_script(FaultRule::new(Direction::ToClient, FaultPosition::After(at.max(1)), fault.clone()));
            match exchange(&open().await, &plain(proxy.address())).await {
                Outcome::Unsent(error) => assert!(!error.is_certainly_unsent(), "{fault:?} after {at}: {error:?}"),
                Outcome::Unread(error) => assert!(matches!(error, BodyError::Broken(_)), "{fault:?} after {at}"),
                Outcome::Answered(..) => panic!("{fault:?} after {at} of {length} was not noticed"),
            }
            assert_eq!(server.requests(), before + 1, "{fault:?} after {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h28_gzip_body_is_decompressed() {
    let body = zipped(b"{\"a\":1}");
    let server = saying(answer(&format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", body.len()), &body));
    let outcome = exchange(&open().await, &plain(server.address())).await;
    assert_eq!(outcome, Outcome::Answered(wharf_net::StatusCode::OK, "{\"a\":1}".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn h28_gzip_bomb_fails_at_the_limit() {
    // 1 GiB in about 1 MiB: zeros, compressed piece by piece, as members of one stream.
    let member = zipped(&vec![0; 64 << 20]);
    let body = member.repeat(16);
    let server = saying(answer(&format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", body.len()), &body));
    let net = open().await;
    let error = bounded(exchange(&net, &plain(server.address()))).await.unread();
    assert_eq!(error, BodyError::TooLarge { limit: LIMIT });
}

#[tokio::test(flavor = "multi_thread")]
async fn h28_corrupt_gzip_is_an_error() {
    let good = zipped(b"{\"a\":1}");
    let mut bad_sum = good.clone();
    let sum_at = good.len() - 8;
    bad_sum[sum_at] ^= 0xff;
    let mut bad_length = good.clone();
    *bad_length.last_mut().unwrap() ^= 0xff;
    let no_trailer = good[..good.len() - 8].to_vec();
    let cut_short = good[..good.len() / 2].to_vec();
    for (what, body) in [
        ("sum", bad_sum),
        ("length", bad_length),
        ("no trailer", no_trailer),
        ("half", cut_short),
        ("none", b"{\"a\":1}".to_vec()),
    ] {
        let server = saying(answer(&format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", body.len()), &body));
        let outcome = exchange(&open().await, &plain(server.address())).await;
        assert!(matches!(outcome, Outcome::Unread(BodyError::Broken(_))), "{what}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h28_unrequested_encodings_are_not_decoded() {
    let twice = zipped(&zipped(b"{\"a\":1}"));
    for encoding in ["gzip, gzip", "br", "zstd", "deflate"] {
        let headers = format!("Content-Encoding: {encoding}\r\nContent-Length: {}\r\n", twice.len());
        let server = saying(answer(&headers, &twice));
        match exchange(&open().await, &plain(server.address())).await {
            Outcome::Answered(_, body) => assert_ne!(body, "{\"a\":1}", "{encoding}"),
            Outcome::Unread(BodyError::Broken(_)) => {}
            other => panic!("{encoding}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_body_fails_at_the_limit() {
    for headers in ["", "Content-Length: 1000000000000\r\n", "Transfer-Encoding: chunked\r\n"] {
        let chunk = [b"10000\r\n", &[b'a'; 0x10000][..], b"\r\n"].concat();
        let start = answer(headers, b"");
        let server = wharf_testkit::transport_faults::Endpoint::start(move |mut guest| {
            if crate::served::receive(&mut guest).is_ok() && guest.write_all(&start).is_ok() {
                while guest.write_all(&chunk).is_ok() {}
            }
        })
        .unwrap();
        let net = open().await;
        let error = bounded(exchange(&net, &plain(server.address()))).await.unread();
        assert_eq!(error, BodyError::TooLarge { limit: LIMIT }, "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn body_limit_is_exact() {
    for (size, fits) in [(LIMIT, true), (LIMIT + 1, false)] {
        let server = answering(move |_| answer(&format!("Content-Length: {size}\r\n"), &vec![b'a'; size]));
        match exchange(&open().await, &plain(server.address())).await {
            Outcome::Answered(_, body) => assert!(fits && body.len() == size),
            outcome => {
                assert!(!fits && outcome == Outcome::Unread(BodyError::TooLarge { limit: LIMIT }), "{outcome:?}")
            }
        }
    }
}
