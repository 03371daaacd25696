use proptest::prelude::*;

use super::{PortError, PortMapping};

proptest! {
    #[test]
    fn a_mapping_is_read_as_it_is_written(host in proptest::option::of(1..=u16::MAX), guest in 1..=u16::MAX) {
        let mapping = PortMapping { host, guest };
        prop_assert_eq!(mapping.to_string().parse(), Ok(mapping));
    }

    #[test]
    fn what_is_no_mapping_is_refused(text in "[0-9]{0,6}[:+ -]?[0-9]{0,6}[:x]?") {
        if let Ok(mapping) = text.parse::<PortMapping>() {
            prop_assert!(mapping.guest > 0 && mapping.host != Some(0));
            prop_assert!(!text.contains(['+', '-', ' ', 'x']));
        }
    }
}

#[test]
fn an_error_repeats_the_beginning_of_what_it_is_about() {
    for text in [
        "", "0", "80:0", "0:80", ":80", "80:", "65536", "+80", "1:2:3", "http",
    ] {
        let error = text.parse::<PortMapping>().unwrap_err();
        assert_eq!(error, PortError::BadMapping { text: text.into() });
        assert_eq!(error.code(), "bad-port-mapping");
    }
    let long = "8".repeat(1000).parse::<PortMapping>().unwrap_err();
    assert!(long.to_string().len() < 200);
}
