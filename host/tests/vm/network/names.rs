//! Names that are as long as a name can be, and longer, and questions that are malformed.

use std::net::Ipv4Addr;

use vmcell::network::NetworkPolicy;

use super::{FixedResolver, RecordingDialer, WebServer, debian_with, python};

/// Looks up names with the C library, and fetches a page of each.
const FETCH_PAGES: &str = include_str!("names.py");

/// Sends messages to the server of names.
const ASK: &str = include_str!("questions.py");

/// Returns a name of so many bytes that ends with a domain. Its parts have 63 bytes, or
/// what is left.
fn name_of(length: usize, domain: &str) -> String {
    let mut name = domain.to_owned();
    while name.len() < length {
        let missing = length - name.len() - 1;
        // Not so many that a dot without a part would be left.
        let part = if missing == 64 { 62 } else { missing.min(63) };
        name = format!("{}.{name}", "a".repeat(part));
    }
    assert_eq!(name.len(), length);
    name
}

#[tokio::test]
async fn the_longest_name_is_reached_and_a_longer_one_is_refused_at_once() {
    let server = WebServer::start().await;
    let port = server.port();
    let (resolver, dialer) = (
        FixedResolver::to(&["1.1.1.1"]),
        RecordingDialer::to(server.address),
    );
    let fixed = name_of(253, "fixed.test");
    let policy = NetworkPolicy::rules()
        .allow(&format!("*.long.test:{port}"))
        .unwrap()
        .allow(&format!("{fixed}:{port}"))
        .unwrap()
        .host(&fixed, Ipv4Addr::LOCALHOST);
    let vm = debian_with(policy.unwrap())
        .resolver(resolver.clone())
        .dialer(dialer.clone())
        .start()
        .await
        .unwrap();
    let fetch = async |names: &[String]| {
        let mut arguments = vec![port.to_string()];
        arguments.extend_from_slice(names);
        let output = python(&vm, FETCH_PAGES, &arguments).await;
        assert!(output.success(), "{output:?}");
        assert!(output.network_denials.is_empty(), "{output:?}");
        output.stdout_text()
    };

    let longest = name_of(253, "long.test");
    // With a dot at its end it has a byte more, and is the same.
    let same = format!("{}.", longest.to_uppercase());
    let label = format!("{}.long.test", "b".repeat(63));
    let allowed = [longest.clone(), same, label.clone(), fixed];
    assert_eq!(fetch(&allowed).await, "hello\n".repeat(4));
    let asked = [longest.clone(), longest, label];
    assert_eq!(resolver.asked(), asked);
    let public = ("1.1.1.1".parse().unwrap(), port);
    let own = (Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(dialer.dialled(), [public, public, public, own]);

    let long_label = format!("{}.long.test", "b".repeat(64));
    let mut too_long: Vec<_> = [254, 255, 256, 1000, 60_000]
        .map(|length| name_of(length, "long.test"))
        .into();
    too_long.push(name_of(254, "long.test") + ".");
    too_long.push(long_label);
    // Not that of a server that does not answer, for which a program waits and tries again.
    let expected = "Name or service not known\n".repeat(too_long.len());
    assert_eq!(fetch(&too_long).await, expected);
    assert_eq!(resolver.asked(), asked);
    assert_eq!(dialer.dialled().len(), 4);
    assert_eq!(vm.network_status().await.unwrap().totals.decisions, 4);
    assert_eq!(fetch(&allowed[..1]).await, "hello\n");

    let denied = name_of(253, "other.test");
    let output = python(&vm, FETCH_PAGES, &[port.to_string(), denied.clone()]).await;
    assert_eq!(output.stdout_text(), "Name or service not known\n");
    assert_eq!(output.network_denials, [denied]);
    vm.kill().await.unwrap();
}

/// The number in front of a message with which its answer is recognized.
const NUMBER: [u8; 2] = [1, 2];
const NUMBER_OF_GOOD: [u8; 2] = [3, 4];

/// Returns a message with these flags and number of questions.
fn message([flags, questions]: [u16; 2], body: &[u8]) -> Vec<u8> {
    let mut message = NUMBER.to_vec();
    for field in [flags, questions, 0, 0, 0] {
        message.extend(field.to_be_bytes());
    }
    message.extend_from_slice(body);
    message
}

/// Returns a question for the address of an encoded name.
fn question(name: &[u8]) -> Vec<u8> {
    let mut message = message([0x100, 1], name);
    message.extend([0, 1, 0, 1]);
    message
}

/// Returns a name as it is in a message.
fn encoded(name: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    for label in name.split('.') {
        encoded.push(u8::try_from(label.len()).unwrap());
        encoded.extend_from_slice(label.as_bytes());
    }
    encoded.push(0);
    encoded
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn malformed_questions_for_names_are_answered_or_dropped_and_others_are_not_held_up() {
    const FOUND: &str = "0 0";
    const MALFORMED: &str = "1 1";
    const NO_SUCH_NAME: &str = "3 3";
    const NOT_IMPLEMENTED: &str = "4 4";
    const DROPPED: &str = "none closed";
    const CUT: &str = "0 closed";

    let resolver = FixedResolver::to(&["1.1.1.1"]);
    let policy = NetworkPolicy::rules().allow("*.long.test").unwrap();
    let vm = debian_with(policy).resolver(resolver.clone());
    let vm = vm.start().await.unwrap();

    let good = question(&encoded("good.long.test"));
    let most_labels = format!("{}long.test", "a.".repeat(122));
    assert_eq!(most_labels.len(), 253);
    let encoded_longest = encoded(&name_of(253, "long.test"));
    assert_eq!(encoded_longest.len(), 255);
    let endless = b"\x01a".repeat(250);
    let long_label = [&[64][..], &[b'a'; 64], &encoded("long.test")].concat();
    let cases = [
        (question(&encoded_longest), FOUND),
        (question(&encoded(&most_labels)), FOUND),
        (question(&encoded(&name_of(254, "long.test"))), MALFORMED),
        (question(&encoded(&name_of(255, "long.test"))), MALFORMED),
        (question(&encoded(&name_of(400, "long.test"))), MALFORMED),
        (question(&long_label), MALFORMED),
        (question(&endless), MALFORMED),
        (message([0x100, 1], &endless), MALFORMED),
        // Pointers to themselves, to each other, to a part in front of them, to the
        // header, and to nothing.
        (question(&[0xc0, 12]), MALFORMED),
        (question(&[0xc0, 14, 0xc0, 12]), MALFORMED),
        (question(&[1, b'a', 0xc0, 12]), MALFORMED),
        (question(&[0xc0, 0]), MALFORMED),
        (question(&[0xff, 0xff]), MALFORMED),
        (question(&[0xc0, 12].repeat(400)), MALFORMED),
        // Kinds of parts that were never used.
        (question(&[0x40, 0]), MALFORMED),
        (question(&[0x80, 0]), MALFORMED),
        // Parts that end behind the message.
        (message([0x100, 1], &[63, b'a']), MALFORMED),
        (message([0x100, 1], &[]), MALFORMED),
        (message([0x100, 1], &encoded_longest), MALFORMED),
        (message([0x100, 0], &good[12..]), MALFORMED),
        (message([0x100, 0xffff], &good[12..]), MALFORMED),
        (message([0x7900, 1], &good[12..]), NOT_IMPLEMENTED),
        // An answer.
        (message([0x8180, 1], &good[12..]), DROPPED),
        (good[..11].to_vec(), DROPPED),
        (Vec::new(), DROPPED),
        // Longer than any question.
        ([&good[..], &[0; 2000]].concat(), CUT),
        // Names that no host has.
        (question(b"\x03a.b\x04long\x04test\0"), NO_SUCH_NAME),
        (question(b"\x03a\0b\x04long\x04test\0"), NO_SUCH_NAME),
        (question(b"\x03a\xffb\x04long\x04test\0"), NO_SUCH_NAME),
    ];
    let mut arguments = vec![hexadecimal(&[&NUMBER_OF_GOOD, &good[2..]].concat())];
    arguments.extend(cases.iter().map(|(message, _)| hexadecimal(message)));
    let output = python(&vm, ASK, &arguments).await;
    assert!(output.success(), "{output:?}");
    let answers = output.stdout_text();
    assert_eq!(answers.lines().count(), cases.len());
    for ((message, expected), answer) in cases.iter().zip(answers.lines()) {
        assert_eq!(answer, *expected, "{}", hexadecimal(message));
    }
    assert_eq!(resolver.asked(), <[String; 0]>::default());
    assert_eq!(vm.network_status().await.unwrap().totals.decisions, 0);
    assert!(vm.health().await.is_healthy());
    vm.kill().await.unwrap();
}
