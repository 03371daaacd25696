use alloc::{format, string::String};

use vmcell_wire::{
    limits::MAX_PATH,
    service::{Http, Probe},
};

/// The longest path of a socket: unix(7).
const MAX_SOCKET_PATH: usize = 107;

/// The longest text that a page is searched for.
const MAX_BODY_TEXT: usize = 4096;

/// Checks a probe. Fails with a message if it is invalid.
pub(crate) fn check(probe: &Probe<'_>) -> Result<(), String> {
    match probe {
        Probe::File { path } => check_path(path, MAX_PATH.saturating_sub(1)),
        Probe::Unix { path } => check_path(path, MAX_SOCKET_PATH),
        Probe::Tcp { port } => check_port(*port),
        Probe::Http(http) => check_http(http),
        Probe::Command { argv } => match argv.iter().next() {
            Some(program) if !program.is_empty() => Ok(()),
            _ => Err("the probe names no program".into()),
        },
        // The program of a pattern was checked when it was decoded.
        Probe::Log { .. } => Ok(()),
        _ => Err("the agent does not know this probe".into()),
    }
}

fn check_path(path: &[u8], longest: usize) -> Result<(), String> {
    if !path.starts_with(b"/") || path.contains(&0) {
        return Err("the path of a probe must be absolute and have no zero byte".into());
    }
    if path.len() > longest {
        return Err(format!("the path of a probe has more than {longest} bytes"));
    }
    Ok(())
}

fn check_port(port: u16) -> Result<(), String> {
    match port {
        0 => Err("a probe cannot use port 0".into()),
        _ => Ok(()),
    }
}

fn check_http(http: &Http<'_>) -> Result<(), String> {
    check_port(http.port)?;
    let is_page =
        http.path.starts_with('/') && http.path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_page || http.path.len() >= MAX_PATH {
        let text = "the page of a probe must begin with / and have printable ASCII without spaces";
        return Err(text.into());
    }
    if !(100..=999).contains(&http.min_status)
        || !(http.min_status..=999).contains(&http.max_status)
    {
        return Err("the range of statuses of a probe is invalid".into());
    }
    if http.body.len() > MAX_BODY_TEXT {
        return Err(format!(
            "the text of a probe has more than {MAX_BODY_TEXT} bytes"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Http<'static> = Http {
        port: 80,
        path: "/",
        min_status: 200,
        max_status: 399,
        body: b"",
    };

    #[test]
    fn what_makes_no_sense_is_refused() {
        for path in [&b"/run/x"[..], b"/"] {
            assert_eq!(check(&Probe::File { path }), Ok(()));
        }
        for path in [&b""[..], b"run/x", b"/a\0b", &[b'/'; 5000]] {
            assert!(check(&Probe::File { path }).is_err());
            assert!(check(&Probe::Unix { path }).is_err());
        }
        assert!(check(&Probe::Unix { path: &[b'/'; 107] }).is_ok());
        assert!(check(&Probe::Unix { path: &[b'/'; 108] }).is_err());
        assert!(check(&Probe::Tcp { port: 1 }).is_ok());
        assert!(check(&Probe::Tcp { port: 0 }).is_err());
        let argv = Default::default();
        assert!(check(&Probe::Command { argv }).is_err());
    }

    #[test]
    fn so_are_pages_that_could_be_more_than_one_request() {
        assert!(check(&Probe::Http(PAGE)).is_ok());
        for path in ["", "x", "/ HTTP/1.1\r\nX: y", "/a b", "/\u{e4}"] {
            assert!(
                check(&Probe::Http(Http { path, ..PAGE })).is_err(),
                "{path}"
            );
        }
        for (min_status, max_status) in [(300, 200), (0, 200), (200, 1000)] {
            let page = Http {
                min_status,
                max_status,
                ..PAGE
            };
            assert!(check(&Probe::Http(page)).is_err());
        }
        assert!(check(&Probe::Http(Http { port: 0, ..PAGE })).is_err());
        let body = &[b'x'; 5000];
        assert!(check(&Probe::Http(Http { body, ..PAGE })).is_err());
    }
}
