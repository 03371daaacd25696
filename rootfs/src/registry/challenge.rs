use std::collections::BTreeMap;

/// How a registry wants to be authorized, from its header `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// By a token, which is to be had at a URL.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Challenge {
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut parameters = parameters(rest);
        Some(Self::Bearer {
            realm: parameters.remove("realm")?,
            service: parameters.remove("service"),
            scope: parameters.remove("scope"),
        })
    }
}

/// Returns the values of `name="value",name=value`.
fn parameters(mut text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        parameters.insert(name, value.trim().to_owned());
        text = rest;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_registries_are_read() {
        assert_eq!(
            Challenge::parse("Basic realm=\"x\""),
            Some(Challenge::Basic)
        );
        let header = "Bearer realm=\"https://auth.io/token\",service=\"registry.io\",\
                      scope=\"repository:a/b:pull,push\"";
        let expected = Challenge::Bearer {
            realm: "https://auth.io/token".to_owned(),
            service: Some("registry.io".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(Challenge::parse(header), Some(expected));
        let short = Challenge::Bearer {
            realm: "http://a".to_owned(),
            service: Some("b".to_owned()),
            scope: None,
        };
        assert_eq!(
            Challenge::parse("bearer realm=http://a, service=b"),
            Some(short)
        );
        for wrong in [
            "",
            "Negotiate",
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm",
        ] {
            assert_eq!(Challenge::parse(wrong), None, "{wrong}");
        }
    }
}
