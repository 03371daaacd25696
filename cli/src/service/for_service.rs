//! Values of options that may name a service.

/// A value of the form `[NAME=]VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForService<T> {
    /// `None`: the position on the command line decides.
    pub(super) service: Option<String>,
    pub(super) value: T,
}

impl<T> ForService<T> {
    /// Splits a text at its first `=` if a name precedes it. No value looks
    /// like that: in probes, a `:` comes first.
    pub(super) fn parse<E: ToString>(
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Self, String> {
        let (service, value) = match text.split_once('=') {
            Some((name, value)) if looks_like_a_name(name) => (Some(name.to_owned()), value),
            _ => (None, text),
        };
        let value = parse(value).map_err(|error| error.to_string())?;
        Ok(Self { service, value })
    }
}

/// Returns whether a text can be meant as a name. The library checks whether it
/// is a valid one.
fn looks_like_a_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_before_an_equals_sign_is_one() {
        for (text, service, value) in [
            ("tcp:8080", None, "tcp:8080"),
            ("web=tcp:8080", Some("web"), "tcp:8080"),
            ("web-1.a=log:x=y", Some("web-1.a"), "log:x=y"),
            ("log:x=y", None, "log:x=y"),
            ("cmd:A=b test", None, "cmd:A=b test"),
            ("=x", None, "=x"),
        ] {
            let for_service = ForService::parse(text, |value| Ok::<_, String>(value.to_owned()));
            let expected = ForService {
                service: service.map(str::to_owned),
                value: value.to_owned(),
            };
            assert_eq!(for_service, Ok(expected), "{text}");
        }
    }
}
