use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::http::{
    HeaderName, HeaderValue, Uri,
    header::AUTHORIZATION,
    request::Parts,
    uri::{self, PathAndQuery},
};
use zeroize::Zeroizing;

/// Where in a request a value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// A part of a header.
    Header(HeaderName),
    /// The password or the user of basic authentication: RFC 7617.
    Basic,
    /// A part of the field of a query with this name.
    Query(String),
}

impl Placement {
    /// Puts a value where a placeholder is, once: a guest with a short placeholder and a
    /// long value would otherwise have requests grow at will. Everything else stays as it is.
    pub(super) fn apply(&self, placeholder: &str, value: &str, request: &mut Parts) {
        match self {
            Self::Header(name) => {
                replace_value(request, name, |text| replaced(text, placeholder, value));
            }
            Self::Basic => {
                replace_value(request, &AUTHORIZATION, |text| {
                    basic(text, placeholder, value)
                });
            }
            Self::Query(field) => {
                let query = request.uri.query().unwrap_or_default();
                if query.contains(placeholder)
                    && let Some(uri) = with_query(&request.uri, field, placeholder, value)
                {
                    request.uri = uri;
                }
            }
        }
    }
}

/// Replaces the first value of a header for which there is another one.
fn replace_value(
    request: &mut Parts,
    name: &HeaderName,
    replace: impl Fn(&str) -> Option<Zeroizing<String>>,
) {
    let values = request.headers.iter_mut();
    for (_, value) in values.filter(|(other, _)| *other == name) {
        let new = value.to_str().ok().and_then(&replace);
        if let Some(mut new) = new.and_then(|new| HeaderValue::from_str(&new).ok()) {
            // HTTP/2 keeps it out of its tables of headers, and nothing prints it.
            new.set_sensitive(true);
            *value = new;
            return;
        }
    }
}

fn replaced(text: &str, placeholder: &str, value: &str) -> Option<Zeroizing<String>> {
    let is_there = text.contains(placeholder);
    is_there.then(|| Zeroizing::new(text.replacen(placeholder, value, 1)))
}

/// Returns the credentials with the value.
fn basic(credentials: &str, placeholder: &str, value: &str) -> Option<Zeroizing<String>> {
    let (scheme, encoded) = credentials.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (user, password) = decoded.split_once(':')?;
    let plain = match () {
        () if password == placeholder => format!("{user}:{value}"),
        // A user has no colon.
        () if user == placeholder && !value.contains(':') => format!("{value}:{password}"),
        () => return None,
    };
    let encoded = Zeroizing::new(STANDARD.encode(Zeroizing::new(plain).as_bytes()));
    Some(Zeroizing::new(format!("Basic {}", *encoded)))
}

/// Returns the URI with the value in a field of its query with this name; `None` if it would
/// be too long.
fn with_query(uri: &Uri, field: &str, placeholder: &str, value: &str) -> Option<Uri> {
    let value = percent_encoded(value);
    let mut text = Zeroizing::new(uri.path().to_owned());
    let mut is_done = false;
    for (index, pair) in uri.query()?.split('&').enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        let (name, old) = pair.split_once('=').unwrap_or((pair, ""));
        let is_field = || percent_decoded(name) == field.as_bytes();
        match !is_done && old.contains(placeholder) && is_field() {
            true => {
                is_done = true;
                let new = Zeroizing::new(old.replacen(placeholder, &value, 1));
                *text += &format!("{name}=");
                *text += &new;
            }
            false => *text += pair,
        }
    }
    let mut parts = uri::Parts::from(uri.clone());
    parts.path_and_query = Some(PathAndQuery::try_from(text.as_str()).ok()?);
    Uri::from_parts(parts).ok()
}

/// Encodes all but what RFC 3986 does not reserve.
fn percent_encoded(value: &str) -> Zeroizing<String> {
    // If it had to move, it would leave a copy behind.
    let mut text = Zeroizing::new(String::with_capacity(3 * value.len()));
    for byte in value.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            _ => *text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// Decodes the name of a field. What is not encoded properly stays as it is.
fn percent_decoded(name: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| str::from_utf8(digits).ok());
        let is_hex = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let digits = digits.filter(is_hex);
        let encoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (rest, _) = match (byte, encoded) {
            (b'%', Some(byte)) => (after.get(2..).unwrap_or_default(), decoded.push(byte)),
            (b'+', _) => (after, decoded.push(b' ')),
            _ => (after, decoded.push(*byte)),
        };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use hyper::http::Request;

    use super::*;

    const PLACEHOLDER: &str = "vmcell-placeholder-00";
    const VALUE: &str = "s3cret/+= &%ü";

    fn apply(placement: &Placement, value: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        placement.apply(PLACEHOLDER, value, &mut parts);
        parts
    }

    fn values<'a>(parts: &'a Parts, name: &str) -> Vec<&'a str> {
        let values = parts.headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }

    #[test]
    fn a_value_is_put_into_its_header_only() {
        let placement = Placement::Header(HeaderName::from_static("x-key"));
        let bearer = format!("Bearer {PLACEHOLDER}");
        let uri = format!("/x?key={PLACEHOLDER}");
        let headers = [
            ("x-key", "other"),
            ("X-Key", bearer.as_str()),
            ("x-key", PLACEHOLDER),
            ("authorization", PLACEHOLDER),
        ];
        let parts = apply(&placement, "s3cret", &uri, &headers);
        // Once.
        assert_eq!(
            values(&parts, "x-key"),
            ["other", "Bearer s3cret", PLACEHOLDER]
        );
        assert_eq!(values(&parts, "authorization"), [PLACEHOLDER]);
        assert_eq!(parts.uri.to_string(), uri);
        let sensitive = parts.headers.get_all("x-key").iter();
        let sensitive: Vec<_> = sensitive.map(HeaderValue::is_sensitive).collect();
        assert_eq!(sensitive, [false, true, false]);
    }

    #[test]
    fn a_value_that_no_header_can_have_is_not_put_in() {
        let placement = Placement::Header(AUTHORIZATION);
        let headers = [("authorization", PLACEHOLDER)];
        let parts = apply(&placement, "a\r\nb: c", "/", &headers);
        assert_eq!(values(&parts, "authorization"), [PLACEHOLDER]);
    }

    #[test]
    fn basic_authentication_gets_the_value_as_password_or_user() {
        let sent = |credentials: &str, value: &str| {
            let credentials = format!("basic {}", STANDARD.encode(credentials));
            let headers = [("authorization", credentials.as_str())];
            let parts = apply(&Placement::Basic, value, "/", &headers);
            let text = values(&parts, "authorization")[0].to_owned();
            let (_, encoded) = text.split_once(' ').unwrap();
            String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
        };
        let with = |text: &str| text.replace('P', PLACEHOLDER);
        assert_eq!(sent(&with("me:P"), VALUE), format!("me:{VALUE}"));
        assert_eq!(sent(&with("P:"), VALUE), format!("{VALUE}:"));
        assert_eq!(sent(&with("me:P"), "a:b"), "me:a:b");
        // It would end in the middle of the value.
        assert_eq!(sent(&with("P:x"), "a:b"), with("P:x"));
        for other in ["me:xP", "me:Px", "me:you", "P"] {
            assert_eq!(sent(&with(other), VALUE), with(other));
        }
    }

    #[test]
    fn other_credentials_stay_as_they_are() {
        for credentials in [
            format!("Bearer {PLACEHOLDER}"),
            format!("Basic {PLACEHOLDER}"),
            "Basic".to_owned(),
            "Basic \u{7f}".replace('\u{7f}', "!!!"),
        ] {
            let headers = [("authorization", credentials.as_str())];
            let parts = apply(&Placement::Basic, VALUE, "/", &headers);
            assert_eq!(values(&parts, "authorization"), [credentials.as_str()]);
        }
    }

    #[test]
    fn a_query_gets_the_value_in_its_field_only() {
        let placement = Placement::Query("api key".to_owned());
        let sent = |uri: &str| {
            let uri = uri.replace('P', PLACEHOLDER);
            let parts = apply(&placement, VALUE, &uri, &[]);
            parts.uri.to_string().replace(PLACEHOLDER, "P")
        };
        let encoded = "s3cret%2F%2B%3D%20%26%25%C3%BC";
        for (uri, expected) in [
            ("/P?api%20key=P&b=P", format!("/P?api%20key={encoded}&b=P")),
            ("/?a&api+key=xPy&", format!("/?a&api+key=x{encoded}y&")),
            (
                "https://a.test:1/?%61pi%20key=P",
                format!("https://a.test:1/?%61pi%20key={encoded}"),
            ),
            (
                "/?api+key=&api+key=PP&api+key=P",
                format!("/?api+key=&api+key={encoded}P&api+key=P"),
            ),
            ("/?apikey=P", "/?apikey=P".to_owned()),
            ("/?api%2=P&api%zzkey=P", "/?api%2=P&api%zzkey=P".to_owned()),
            ("/P", "/P".to_owned()),
        ] {
            assert_eq!(sent(uri), expected, "{uri}");
        }
    }
}
