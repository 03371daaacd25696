use std::{fmt, str::FromStr};

/// A signal of Linux, with its number on x86-64: see signal(7).
///
/// ```
/// use vmcell::Signal;
///
/// assert_eq!(Signal::TERM.number(), 15);
/// assert_eq!("sigterm".parse(), Ok(Signal::TERM));
/// assert_eq!("15".parse(), Ok(Signal::TERM));
/// assert_eq!(Signal::TERM.to_string(), "SIGTERM");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u8", into = "u8"))]
pub struct Signal(u8);

/// A text that names no [`Signal`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a signal: use a name or number such as TERM, SIGTERM or 15")]
pub struct UnknownSignal(String);

macro_rules! signals {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Signal {
            $(
                #[doc = $meaning]
                pub const $name: Self = Self($number);
            )*
        }

        const NAMES: &[(&str, Signal)] = &[$((stringify!($name), Signal::$name)),*];
    };
}

signals! {
    HUP = 1, "The terminal is gone. Many servers read their configuration again.";
    INT = 2, "Interrupted, as by Ctrl-C.";
    QUIT = 3, "Quit with a core dump, as by Ctrl-\\\\.";
    ILL = 4, "An invalid instruction.";
    TRAP = 5, "A breakpoint.";
    ABRT = 6, "The program called `abort`.";
    BUS = 7, "A bad memory access.";
    FPE = 8, "A bad arithmetic operation.";
    KILL = 9, "Ends the process. It cannot be caught.";
    USR1 = 10, "For programs to define.";
    SEGV = 11, "An invalid memory access.";
    USR2 = 12, "For programs to define.";
    PIPE = 13, "A write to a pipe that nobody reads.";
    ALRM = 14, "A timer has expired.";
    TERM = 15, "Asks the process to end.";
    STKFLT = 16, "Unused.";
    CHLD = 17, "A child has stopped or ended.";
    CONT = 18, "Continues a stopped process.";
    STOP = 19, "Stops the process. It cannot be caught.";
    TSTP = 20, "Stops the process, as by Ctrl-Z.";
    TTIN = 21, "A background process reads from its terminal.";
    TTOU = 22, "A background process writes to its terminal.";
    URG = 23, "Urgent data on a socket.";
    XCPU = 24, "The limit of processor time is exceeded.";
    XFSZ = 25, "The limit of file sizes is exceeded.";
    VTALRM = 26, "A timer of processor time has expired.";
    PROF = 27, "A timer for profiling has expired.";
    WINCH = 28, "The size of the terminal has changed.";
    IO = 29, "A descriptor is ready.";
    PWR = 30, "The power fails.";
    SYS = 31, "An invalid system call.";
}

impl Signal {
    /// Number 0, which is not sent: it only checks that a process runs.
    pub const NULL: Self = Self(0);

    /// The largest number of a signal.
    const MAX_NUMBER: u8 = 64;

    /// Returns the signal with this number, 0 to 64.
    pub fn from_number(number: u8) -> Option<Self> {
        (number <= Self::MAX_NUMBER).then_some(Self(number))
    }

    /// Returns its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<Signal> for u8 {
    fn from(signal: Signal) -> Self {
        signal.number()
    }
}

impl TryFrom<u8> for Signal {
    type Error = UnknownSignal;

    fn try_from(number: u8) -> Result<Self, UnknownSignal> {
        Self::from_number(number).ok_or_else(|| UnknownSignal(number.to_string()))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, signal)| signal == self) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    /// Parses a number, or a name with or without `SIG`, in any case.
    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let signal = match text.parse() {
            Ok(number) => Self::from_number(number),
            Err(_) => NAMES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, signal)| *signal),
        };
        signal.ok_or_else(|| UnknownSignal(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("sigusr1", 10),
            ("int", 2),
            ("0", 0),
            ("64", 64),
        ] {
            assert_eq!(
                text.parse::<Signal>().map(Signal::number),
                Ok(number),
                "{text}"
            );
        }
        for text in ["", "SIG", "-1", "65", "256", "TERMINATE"] {
            assert!(text.parse::<Signal>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_number_up_to_31_has_a_name_that_is_read_again() {
        for number in 0..=Signal::MAX_NUMBER {
            let signal = Signal::from_number(number).unwrap();
            let named = (1..32).contains(&number);
            assert_eq!(signal.to_string().parse() == Ok(signal), named, "{signal}");
        }
        assert_eq!(Signal::from_number(65), None);
    }
}
