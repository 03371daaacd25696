//! Evaluates a possibly incomplete HTTP response, without I/O. The grammar is
//! that of RFC 9112. With the crate `httparse` the agent is 4 KiB larger, and
//! thirty of these lines are saved.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use vmcell_wire::service::Http;

/// The evaluation of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Success,
    Failure(String),
    /// More bytes are needed.
    Incomplete,
}

/// The longest status line and header.
const MAX_HEAD: usize = 16 * 1024;

/// The most bytes of the empty line after the header.
const EMPTY_LINE: usize = 2;

/// How much of a body is searched.
const MAX_BODY: usize = 64 * 1024;

/// How much of a response is read: the above and room for the framing of
/// chunks.
pub(super) const MAX_RESPONSE: usize = MAX_HEAD + 2 * MAX_BODY;

/// The length of `HTTP/1.1 200`.
const STATUS_END: usize = 12;

/// Evaluates the response read so far. `has_ended`: no more will follow.
pub(super) fn examine(response: &[u8], has_ended: bool, wanted: &Http<'_>) -> Verdict {
    let Some(start) = response.get(..STATUS_END) else {
        if has_ended || !is_beginning(response) {
            return not_http();
        }
        return Verdict::Incomplete;
    };
    let Some(status) = status(start) else {
        return not_http();
    };
    let Some((head, body)) = split_head(response) else {
        if has_ended || response.len() >= MAX_HEAD.saturating_add(EMPTY_LINE) {
            return failure("the header of the answer has no end");
        }
        return Verdict::Incomplete;
    };
    if !matches!(response.get(STATUS_END), Some(b' ' | b'\r' | b'\n')) {
        return not_http();
    }
    if !(wanted.min_status..=wanted.max_status).contains(&status) {
        return Verdict::Failure(format!("HTTP status {status}"));
    }
    if wanted.body.is_empty() {
        return Verdict::Success;
    }
    let (body, is_complete) = content(head, body);
    let searched = body.get(..MAX_BODY).unwrap_or(&body);
    if contains(searched, wanted.body) {
        return Verdict::Success;
    }
    if has_ended || is_complete || body.len() >= MAX_BODY {
        return failure("the page does not have the text");
    }
    Verdict::Incomplete
}

fn failure(reason: &str) -> Verdict {
    Verdict::Failure(String::from(reason))
}

fn not_http() -> Verdict {
    failure("the answer is not HTTP")
}

/// Returns whether a status line can begin with these bytes.
fn is_beginning(bytes: &[u8]) -> bool {
    const VERSION: &[u8] = b"HTTP/1.";
    let common = bytes.len().min(VERSION.len());
    bytes.get(..common) == VERSION.get(..common)
}

fn status(start: &[u8]) -> Option<u16> {
    let rest = start.strip_prefix(b"HTTP/1.")?;
    let [minor, b' ', digits @ ..] = rest else {
        return None;
    };
    if !minor.is_ascii_digit() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status = core::str::from_utf8(digits).ok()?.parse().ok()?;
    (100..=999).contains(&status).then_some(status)
}

/// Returns the head, including the line end of its last line, and what follows
/// it.
fn split_head(response: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = response;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, behind) = rest.split_at_checked(end.saturating_add(1))?;
        if matches!(line, b"\n" | b"\r\n") {
            let length = response.len().saturating_sub(rest.len());
            return (length <= MAX_HEAD).then_some((response.get(..length)?, behind));
        }
        rest = behind;
    }
}

/// Returns the body without its framing, and whether it is complete.
fn content<'a>(head: &[u8], body: &'a [u8]) -> (Cow<'a, [u8]>, bool) {
    if let Some(coding) = field(head, b"transfer-encoding") {
        if ends_with_chunked(coding) {
            let (content, is_complete) = unchunk(body);
            return (Cow::Owned(content), is_complete);
        }
        return (Cow::Borrowed(body), false);
    }
    let length = field(head, b"content-length")
        .and_then(|length| core::str::from_utf8(length).ok())
        .and_then(|length| length.parse::<usize>().ok());
    match length.and_then(|length| body.get(..length)) {
        Some(whole) => (Cow::Borrowed(whole), true),
        None => (Cow::Borrowed(body), false),
    }
}

fn ends_with_chunked(coding: &[u8]) -> bool {
    let last = coding.rsplit(|byte| *byte == b',').next();
    last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Returns the value of a header field.
fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (found, value) = line.split_at_checked(colon)?;
        let is_it = found.eq_ignore_ascii_case(name);
        is_it.then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}

/// Joins the chunks received so far. Returns whether they are complete.
fn unchunk(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    while content.len() < MAX_BODY {
        let Some(end) = body.iter().position(|byte| *byte == b'\n') else {
            return (content, false);
        };
        let (line, rest) = body.split_at_checked(end).unwrap_or_default();
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = core::str::from_utf8(size.trim_ascii()).unwrap_or_default();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            // The framing is invalid.
            return (content, true);
        };
        if size == 0 {
            return (content, true);
        }
        let chunk = rest.get(1..).unwrap_or_default();
        let Some((chunk, rest)) = chunk.split_at_checked(size) else {
            content.extend_from_slice(chunk);
            return (content, false);
        };
        content.extend_from_slice(chunk);
        // A chunk ends with a line break.
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        body = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    (content, false)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len().max(1)).any(|part| part == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: Http<'static> = Http {
        port: 80,
        path: "/",
        min_status: 200,
        max_status: 299,
        body: b"",
    };

    const WITH_TEXT: Http<'static> = Http {
        body: b"it works",
        ..PAGE
    };

    fn failed(response: &[u8], wanted: &Http<'_>) -> String {
        match examine(response, true, wanted) {
            Verdict::Failure(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_status_decides_as_soon_as_the_head_is_there() {
        let response = b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n";
        assert_eq!(examine(response, false, &PAGE), Verdict::Success);
        assert_eq!(examine(&response[..30], false, &PAGE), Verdict::Incomplete);
        assert_eq!(failed(b"HTTP/1.0 503 No\n\n", &PAGE), "HTTP status 503");
        assert_eq!(
            examine(b"HTTP/1.1 200\r\n\r\n", false, &PAGE),
            Verdict::Success
        );
        assert_eq!(
            failed(b"HTTP/1.1 200 OK\r\n", &PAGE),
            "the header of the answer has no end"
        );
    }

    #[test]
    fn what_is_not_http_is_found_at_once() {
        for response in [
            &b"SSH-2.0-OpenSSH\r\n"[..],
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"HTTP/1.1  200 OK\r\n\r\n",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1 099 OK\r\n\r\n",
            b"HTTP/1.x 200 OK\r\n\r\n",
            b"x",
        ] {
            let verdict = examine(response, false, &PAGE);
            assert_eq!(verdict, not_http(), "{}", String::from_utf8_lossy(response));
        }
        assert_eq!(examine(b"HTT", false, &PAGE), Verdict::Incomplete);
        assert_eq!(failed(b"", &PAGE), "the answer is not HTTP");
    }

    #[test]
    fn the_longest_header_may_arrive_without_its_last_byte() {
        let mut response = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        response.resize(MAX_HEAD - 2, b'x');
        response.extend(b"\r\n\r\n");
        for end in [MAX_HEAD, MAX_HEAD + 1] {
            let verdict = examine(&response[..end], false, &PAGE);
            assert_eq!(verdict, Verdict::Incomplete);
        }
        assert_eq!(examine(&response, false, &PAGE), Verdict::Success);
        response[MAX_HEAD] = b'x';
        let verdict = examine(&response, false, &PAGE);
        assert_eq!(verdict, failure("the header of the answer has no end"));
    }

    #[test]
    fn a_text_is_looked_for_in_the_body_only() {
        let head = b"HTTP/1.1 200 it works\r\nX: it works\r\n";
        let absent = "the page does not have the text";
        assert_eq!(failed(&[&head[..], b"\r\nno"].concat(), &WITH_TEXT), absent);
        let found = [&head[..], b"\r\nwell, it works"].concat();
        assert_eq!(examine(&found, false, &WITH_TEXT), Verdict::Success);
        // The search does not wait for a server that keeps the connection open.
        let whole = [&head[..], b"Content-Length: 4\r\n\r\nabcdit works"].concat();
        assert_eq!(examine(&whole, false, &WITH_TEXT), failure(absent));
        let half = [&head[..], b"Content-Length: 40\r\n\r\nabcd"].concat();
        assert_eq!(examine(&half, false, &WITH_TEXT), Verdict::Incomplete);
        let mut long = [&head[..], b"\r\n"].concat();
        long.resize(long.len() + MAX_BODY, b'x');
        long.extend(b"it works");
        assert_eq!(examine(&long, false, &WITH_TEXT), failure(absent));
    }

    #[test]
    fn a_text_is_found_across_chunks() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n";
        let found = format!("{head}3\r\nit \r\n5;x=y\r\nworks\r\n0\r\n\r\n");
        assert_eq!(
            examine(found.as_bytes(), false, &WITH_TEXT),
            Verdict::Success
        );
        let absent = format!("{head}2\r\nit\r\n0\r\n\r\n");
        assert!(matches!(
            examine(absent.as_bytes(), false, &WITH_TEXT),
            Verdict::Failure(_)
        ));
        for part in [
            format!("{head}3\r\nit"),
            format!("{head}3\r\nit \r\n"),
            format!("{head}5"),
        ] {
            let verdict = examine(part.as_bytes(), false, &WITH_TEXT);
            assert_eq!(verdict, Verdict::Incomplete);
        }
        let senseless = format!("{head}zz\r\nit works");
        assert!(matches!(
            examine(senseless.as_bytes(), false, &WITH_TEXT),
            Verdict::Failure(_)
        ));
    }

    proptest! {
        #[test]
        fn whatever_comes_there_is_a_verdict_at_the_end(
            response in prop::collection::vec(any::<u8>(), 0..300),
            like_http in any::<bool>(),
            chunked in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            if like_http {
                bytes.extend(b"HTTP/1.1 200 OK\r\n");
                if chunked {
                    bytes.extend(b"transfer-encoding: chunked\r\n");
                }
                bytes.extend(b"\r\n");
            }
            bytes.extend(response);
            for wanted in [&PAGE, &WITH_TEXT] {
                prop_assert_ne!(examine(&bytes, true, wanted), Verdict::Incomplete);
                let _ = examine(&bytes, false, wanted);
            }
        }

        /// A decision on a part of a response is final.
        #[test]
        fn more_bytes_do_not_turn_a_failure_into_a_success(
            body in "(it works|it |works|3\r\n|0\r\n|\r\n){0,8}",
            cut in 0..200usize,
            chunked in any::<bool>(),
        ) {
            let coding = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
            let whole = format!("HTTP/1.1 200 OK\r\n{coding}\r\n{body}");
            let part = whole.as_bytes().get(..cut).unwrap_or(whole.as_bytes());
            match examine(part, false, &WITH_TEXT) {
                Verdict::Incomplete => {}
                decided => prop_assert_eq!(decided, examine(whole.as_bytes(), true, &WITH_TEXT)),
            }
        }
    }
}
