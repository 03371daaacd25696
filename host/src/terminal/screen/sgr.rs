use super::style::{Colour, Style};
use crate::terminal::sequence::{Parameters, Sequence};

/// Applies `CSI … m`: select graphic rendition, ECMA-48 8.3.117.
pub(super) fn apply(style: &mut Style, sequence: &Sequence) {
    let mut parameters = sequence.parameters();
    while let Some(parameter) = parameters.next() {
        match parameter {
            [] | [0] => *style = Style::default(),
            [1] => style.bold = true,
            [2] => style.dim = true,
            [3] => style.italic = true,
            [4, 0] | [24] => style.underline = false,
            [4, ..] | [21] => style.underline = true,
            [7] => style.reverse = true,
            [8] => style.hidden = true,
            [9] => style.struck = true,
            [22] => (style.bold, style.dim) = (false, false),
            [23] => style.italic = false,
            [27] => style.reverse = false,
            [28] => style.hidden = false,
            [29] => style.struck = false,
            [number @ 30..=37] => style.foreground = basic(*number, 30, 0),
            [number @ 40..=47] => style.background = basic(*number, 40, 0),
            [number @ 90..=97] => style.foreground = basic(*number, 90, 8),
            [number @ 100..=107] => style.background = basic(*number, 100, 8),
            [39] => style.foreground = Colour::Default,
            [49] => style.background = Colour::Default,
            [38, sub @ ..] => style.foreground = colour(sub, &mut parameters, style.foreground),
            [48, sub @ ..] => style.background = colour(sub, &mut parameters, style.background),
            // The underline colour is not supported, but its numbers must be
            // skipped.
            [58, sub @ ..] => drop(colour(sub, &mut parameters, Colour::Default)),
            _ => {}
        }
    }
}

fn basic(number: u16, first: u16, bright: u8) -> Colour {
    let offset = u8::try_from(number.saturating_sub(first)).unwrap_or(0);
    Colour::Palette(offset.saturating_add(bright))
}

/// Parses a colour, given as subparameters or in the parameters that follow.
fn colour(sub: &[u16], parameters: &mut Parameters<'_>, before: Colour) -> Colour {
    let mut next = || {
        parameters
            .next()
            .and_then(|parameter| parameter.first().copied())
    };
    let chosen = match sub {
        [5, index, ..] => palette(*index),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => rgb(*red, *green, *blue),
        [] => match next() {
            Some(5) => next().and_then(palette),
            Some(2) => {
                let (red, green, blue) = (next(), next(), next());
                red.zip(green)
                    .zip(blue)
                    .and_then(|((red, green), blue)| rgb(red, green, blue))
            }
            _ => None,
        },
        _ => None,
    };
    chosen.unwrap_or(before)
}

fn palette(index: u16) -> Option<Colour> {
    u8::try_from(index).ok().map(Colour::Palette)
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Colour> {
    let part = |value: u16| u8::try_from(value).ok();
    Some(Colour::Rgb(part(red)?, part(green)?, part(blue)?))
}
