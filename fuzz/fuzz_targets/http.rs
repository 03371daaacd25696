//! For arbitrary HTTP that comes out of a guest:
//!
//! - A probe decides the same about a part of an answer and about all of it.
//! - The proxy understands a request in the same way however it is split, and what it passes
//!   on is one request to the host that was asked for, without what was meant for the proxy.
//! - A broker puts each value in once, sends requests to its host only, and no program gets
//!   the value, whatever the host answers.
//!
//! The input is read as
//!
//! ```text
//! byte   0                  1 .. 3                 2 + n                  rest
//!        size of a piece    n, little endian       request, or answer     answer of the
//!                                                  of a web server        host to the broker
//! ```
//!
//! `HEADER`, `BASIC` and `QUERY` in a request stand for the placeholders of the broker, and
//! `VALUE` in an answer for the value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell::fuzzing::{VALUE, exchange, parse_proxy_request};
use vmcell_agent::fuzzing::examine_response;

fuzz_target!(|input: &[u8]| {
    let Some((&[piece, low, high], rest)) = input.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let (request, answer) = rest.split_at(rest.len().min(length));
    let piece = usize::from(piece).max(1);
    check_probe(request, piece);
    check_proxy(request, piece);
    check_broker(request, answer, piece);
});

fn check_probe(response: &[u8], piece: usize) {
    for text in [&b""[..], b"ok", b"\r\n"] {
        let whole = examine_response(response, true, text);
        let verdict = whole.as_ref().expect("there is a verdict at the end");
        assert_safe(verdict);
        let part = response.get(..piece).unwrap_or(response);
        if let Some(early) = examine_response(part, false, text) {
            assert_eq!(whole, Some(early), "it changed its mind");
        }
    }
}

fn assert_safe<T>(result: &Result<T, String>) {
    if let Err(text) = result {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

fn check_proxy(received: &[u8], piece: usize) {
    let whole = parse_proxy_request(received);
    assert_safe(&whole);
    let part = received.get(..piece).unwrap_or(received);
    match (parse_proxy_request(part), &whole) {
        (Ok(None), _) => {}
        (Ok(Some(early)), Ok(Some(whole))) => {
            assert_eq!(early.wanted, whole.wanted);
            assert_eq!(early.forwarded, whole.forwarded);
            assert!(whole.rest.starts_with(&early.rest));
        }
        (early, whole) => assert_eq!(early.as_ref(), whole.as_ref()),
    }
    let Ok(Some(request)) = whole else {
        return;
    };
    assert!(received.ends_with(&request.rest));
    assert!(
        !request.wanted.chars().any(char::is_control),
        "{:?}",
        request.wanted
    );
    if let Some(head) = request.forwarded {
        check_forwarded(&head, &request.wanted);
    }
}

/// Checks that a head is one request, and to whom it is.
fn check_forwarded(head: &[u8], wanted: &str) {
    let mut fields = [httparse::EMPTY_HEADER; 200];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = request.parse(head).expect("it is a request");
    assert_eq!(
        parsed,
        httparse::Status::Complete(head.len()),
        "more than one request"
    );
    assert!(request.path.is_some_and(|path| path.starts_with('/')));
    let values = |name: &str| {
        let fields = request.headers.iter();
        let named = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect::<Vec<_>>()
    };
    assert_eq!(values("Connection"), [b"close"]);
    for name in ["Proxy-Authorization", "Proxy-Connection", "Keep-Alive"] {
        assert!(values(name).is_empty(), "{name}");
    }
    let hosts = values("Host");
    let [host] = hosts[..] else {
        panic!("{} hosts", hosts.len());
    };
    let host = std::str::from_utf8(host)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let name = wanted.rsplit_once(':').map_or(wanted, |(name, _)| name);
    // It is said in another way if it is an address, or no name.
    let is_name = |text: &str| {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        text.parse::<std::net::IpAddr>().is_err() && text.bytes().all(is_usual)
    };
    if is_name(name) {
        let host = host.rsplit_once(':').map_or(&*host, |(host, _)| host);
        assert_eq!(host.trim_end_matches('.'), name.trim_end_matches('.'));
    }
}

fn check_broker(request: &[u8], answer: &[u8], piece: usize) {
    let value = VALUE.as_bytes();
    if contains(request, value) {
        return;
    }
    let answer = replace(answer, b"VALUE", value);
    let mut has_placeholder = false;
    let fill = |placeholders: [&str; 3]| {
        let mut filled = request.to_vec();
        for (word, placeholder) in [&b"HEADER"[..], b"BASIC", b"QUERY"]
            .iter()
            .zip(placeholders)
        {
            filled = replace(&filled, word, placeholder.as_bytes());
            // It is in Base64 in basic authentication.
            has_placeholder |= contains(request, word) || contains(request, b"asic");
        }
        filled
    };
    let brokered = exchange(fill, &answer, piece);
    assert!(
        !contains(&brokered.to_program, value),
        "a program has got the value"
    );
    if !has_placeholder {
        assert!(
            !contains(&brokered.to_host, value),
            "nobody asked for the value"
        );
    }
    check_requests(&brokered.to_host, value);
}

/// Checks the first request that a host has got.
fn check_requests(sent: &[u8], value: &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; 200];
    let mut request = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = request.parse(sent) else {
        return;
    };
    let fields = request.headers.iter();
    let hosts = fields.filter(|field| field.name.eq_ignore_ascii_case("host"));
    let hosts: Vec<_> = hosts.map(|field| field.value).collect();
    assert_eq!(hosts, [b"api.test"]);
    let head = &sent[..length];
    let count = head
        .windows(value.len())
        .filter(|part| *part == value)
        .count();
    // In a header and in a field of the query.
    assert!(count <= 2, "it is there {count} times");
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

fn replace(bytes: &[u8], word: &[u8], with: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::new();
    let mut rest = bytes;
    while let Some(place) = rest.windows(word.len()).position(|part| part == word) {
        replaced.extend_from_slice(&rest[..place]);
        replaced.extend_from_slice(with);
        rest = &rest[place + word.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
