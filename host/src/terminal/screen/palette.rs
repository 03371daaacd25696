use super::style::{Colour, Style};

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// The default colour of text.
pub(super) const FOREGROUND: Rgb = [0xd4, 0xd8, 0xe0];

/// The default background.
pub(super) const BACKGROUND: Rgb = [0x16, 0x18, 0x1d];

/// The eight basic colours and their bright variants.
const BASIC: [Rgb; 16] = [
    [0x2a, 0x2e, 0x36],
    [0xe0, 0x5f, 0x65],
    [0x78, 0xb8, 0x6b],
    [0xdb, 0xa7, 0x50],
    [0x5f, 0x9d, 0xe8],
    [0xb8, 0x7f, 0xdc],
    [0x4f, 0xb5, 0xbe],
    [0xb4, 0xba, 0xc4],
    [0x6a, 0x72, 0x80],
    [0xf2, 0x8b, 0x8f],
    [0x9c, 0xd6, 0x8e],
    [0xf0, 0xc6, 0x74],
    [0x8c, 0xbc, 0xf5],
    [0xd2, 0xa6, 0xf0],
    [0x7a, 0xd3, 0xda],
    [0xf5, 0xf7, 0xfa],
];

/// Returns the foreground and background of a style on a dark screen.
pub(super) fn colours(style: Style) -> (Rgb, Rgb) {
    let mut foreground = to_rgb(style.foreground, FOREGROUND);
    let mut background = to_rgb(style.background, BACKGROUND);
    if style.reverse {
        std::mem::swap(&mut foreground, &mut background);
    }
    if style.dim {
        foreground = blend(foreground, background, 150);
    }
    if style.hidden {
        foreground = background;
    }
    (foreground, background)
}

/// Blends one colour over another. `alpha` is in 255ths.
pub(super) fn blend(upper: Rgb, lower: Rgb, alpha: u8) -> Rgb {
    let mut blended = lower;
    for (blended, upper) in blended.iter_mut().zip(upper) {
        let (alpha, upper, lower) = (u32::from(alpha), u32::from(upper), u32::from(*blended));
        let sum = upper * alpha + lower * (255 - alpha);
        *blended = u8::try_from(sum / 255).unwrap_or(u8::MAX);
    }
    blended
}

fn to_rgb(colour: Colour, default: Rgb) -> Rgb {
    match colour {
        Colour::Default => default,
        Colour::Rgb(red, green, blue) => [red, green, blue],
        Colour::Palette(index) => indexed(index),
    }
}

/// Returns one of xterm's 256 colours: 16 basic ones, a colour cube, and greys.
fn indexed(index: u8) -> Rgb {
    if let Some(basic) = BASIC.get(usize::from(index)) {
        return *basic;
    }
    if index >= 232 {
        return [(index - 232) * 10 + 8; 3];
    }
    let index = index - 16;
    [index / 36, index / 6 % 6, index % 6].map(|step| match step {
        0 => 0,
        step => step * 40 + 55,
    })
}
