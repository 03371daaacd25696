/// How many numbers a control sequence can have. One with more is ignored.
const MAX_NUMBERS: usize = 32;

/// How many private markers and intermediates a sequence can have. One with
/// more is ignored.
const MAX_INTERMEDIATES: usize = 2;

/// A control sequence that is being parsed: ECMA-48 5.4.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    numbers: [u16; MAX_NUMBERS],
    /// The count of numbers, including the one that is being parsed.
    count: usize,
    /// A bit for each number that follows a colon.
    subparameter: u32,
    intermediates: [char; MAX_INTERMEDIATES],
    intermediate_count: usize,
    /// A limit was exceeded.
    overflowed: bool,
}

impl Sequence {
    /// Starts a new sequence.
    pub(super) fn clear(&mut self) {
        self.numbers[0] = 0;
        self.count = 1;
        self.subparameter = 0;
        self.intermediate_count = 0;
        self.overflowed = false;
    }

    /// Adds a character between `CSI` and the final character.
    pub(super) fn push(&mut self, next: char) {
        match (next, next.to_digit(10)) {
            (_, Some(digit)) => self.push_digit(digit),
            (';', _) => self.end_number(false),
            (':', _) => self.end_number(true),
            _ => self.push_intermediate(next),
        }
    }

    fn push_digit(&mut self, digit: u32) {
        if let Some(number) = self.numbers.get_mut(self.count.saturating_sub(1)) {
            let digit = u16::try_from(digit).unwrap_or_default();
            *number = number.saturating_mul(10).saturating_add(digit);
        }
    }

    /// Ends a number. `subparameter` is whether a colon precedes the next one.
    fn end_number(&mut self, subparameter: bool) {
        let Some(next) = self.numbers.get_mut(self.count) else {
            self.overflowed = true;
            return;
        };
        *next = 0;
        self.subparameter |= u32::from(subparameter) << self.count;
        self.count = self.count.saturating_add(1);
    }

    /// Adds a private marker or an intermediate.
    fn push_intermediate(&mut self, next: char) {
        match self.intermediates.get_mut(self.intermediate_count) {
            Some(free) => {
                *free = next;
                self.intermediate_count = self.intermediate_count.saturating_add(1);
            }
            None => self.overflowed = true,
        }
    }

    /// Returns the private markers and intermediates, or `None` if a limit was
    /// exceeded.
    pub(super) fn intermediates(&self) -> Option<&[char]> {
        match self.overflowed {
            true => None,
            false => self.intermediates.get(..self.intermediate_count),
        }
    }

    /// Returns whether it has neither private markers nor intermediates.
    pub(super) fn is_standard(&self) -> bool {
        self.intermediates() == Some(&[])
    }

    /// Returns the parameters, each with its subparameters.
    pub(super) fn parameters(&self) -> Parameters<'_> {
        Parameters {
            sequence: self,
            next: 0,
        }
    }

    /// Returns a parameter by its index, or 0 if it is missing.
    pub(super) fn parameter(&self, index: usize) -> usize {
        let parameter = self.parameters().nth(index);
        parameter
            .and_then(|parameter| parameter.first().copied())
            .unwrap_or(0)
            .into()
    }

    /// Returns the first number, or 0 if it is missing.
    pub(super) fn first(&self) -> usize {
        usize::from(self.numbers[0])
    }

    /// Returns the count of numbers.
    pub(super) fn number_count(&self) -> usize {
        self.count
    }
}

/// An iterator over the parameters of a sequence.
pub(super) struct Parameters<'a> {
    sequence: &'a Sequence,
    next: usize,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = &'a [u16];

    fn next(&mut self) -> Option<&'a [u16]> {
        let Sequence {
            numbers,
            count,
            subparameter,
            ..
        } = self.sequence;
        let first = self.next;
        if first >= *count {
            return None;
        }
        let mut end = first.saturating_add(1);
        while end < *count && subparameter >> end & 1 == 1 {
            end = end.saturating_add(1);
        }
        self.next = end;
        numbers.get(first..end)
    }
}
