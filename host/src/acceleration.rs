use std::fmt;

use rustix::fs::{Access, access};

/// How the guest's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acceleration {
    /// By the processor, through `/dev/kvm`.
    Kvm,
    /// By emulation. Works everywhere, and is many times slower.
    Tcg,
}

impl fmt::Display for Acceleration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        })
    }
}

/// An [`Acceleration`] and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccelerationChoice {
    /// What is used.
    pub acceleration: Acceleration,
    /// The reason, as text for people.
    pub reason: &'static str,
}

impl AccelerationChoice {
    /// The acceleration that the caller requires.
    pub(crate) fn requested(acceleration: Acceleration) -> Self {
        Self {
            acceleration,
            reason: "asked for by the caller",
        }
    }

    /// Returns the best acceleration of this machine.
    ///
    /// A `/dev/kvm` that can be opened is not enough: some machines have the
    /// device without the processor's virtualisation, and guests die there.
    pub fn detect() -> Self {
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        choose(
            access("/dev/kvm", Access::EXISTS).is_ok(),
            access("/dev/kvm", Access::READ_OK | Access::WRITE_OK).is_ok(),
            has_virtualisation(&processor),
        )
    }
}

fn choose(device_exists: bool, device_opens: bool, virtualisation: bool) -> AccelerationChoice {
    let (acceleration, reason) = match (device_exists, device_opens, virtualisation) {
        (false, ..) => (Acceleration::Tcg, "there is no /dev/kvm"),
        (true, false, _) => (
            Acceleration::Tcg,
            "this user may not open /dev/kvm: add it to the group kvm",
        ),
        (true, true, false) => (
            Acceleration::Tcg,
            "/dev/kvm exists, but the processor reports no vmx or svm",
        ),
        (true, true, true) => (Acceleration::Kvm, "/dev/kvm works"),
    };
    AccelerationChoice {
        acceleration,
        reason,
    }
}

fn has_virtualisation(processor: &str) -> bool {
    processor
        .lines()
        .filter(|line| line.starts_with("flags"))
        .flat_map(str::split_whitespace)
        .any(|flag| flag == "vmx" || flag == "svm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_needs_the_device_the_right_and_the_processor() {
        for (exists, opens, virtualisation, expected) in [
            (true, true, true, Acceleration::Kvm),
            (true, true, false, Acceleration::Tcg),
            (true, false, true, Acceleration::Tcg),
            (false, false, true, Acceleration::Tcg),
        ] {
            let choice = choose(exists, opens, virtualisation);
            assert_eq!(choice.acceleration, expected, "{}", choice.reason);
        }
    }

    #[test]
    fn flags_are_whole_words() {
        assert!(has_virtualisation("flags\t\t: fpu vmx sse\n"));
        assert!(has_virtualisation("flags : svm"));
        assert!(!has_virtualisation(
            "flags : fpu svm_lock\nmodel name : vmx svm\n"
        ));
    }
}
