//! Box-drawing, block and Braille characters. They are drawn, not taken from the
//! font, because they must connect to neighbouring cells.

use super::{
    palette::Rgb,
    picture::{Area, Picture},
};

/// Full opacity.
const FULL: u8 = u8::MAX;

/// Draws a box-drawing, block or Braille character. Returns false for others.
pub(super) fn draw(picture: &mut Picture, character: char, area: Area, colour: Rgb) -> bool {
    match character {
        '\u{2500}'..='\u{257f}' => draw_lines(picture, character, area, colour),
        '\u{2580}'..='\u{259f}' => draw_block(picture, character, area, colour),
        '\u{2800}'..='\u{28ff}' => draw_braille(picture, character, area, colour),
        _ => return false,
    }
    true
}

/// Draws a box in place of a character that the font lacks.
pub(super) fn draw_missing_glyph(picture: &mut Picture, area: Area, colour: Rgb) {
    let (width, height) = (area.width.saturating_sub(4), area.height.saturating_sub(7));
    for (x, y, width, height) in [
        (2, 3, width, 1),
        (2, height + 2, width, 1),
        (2, 3, 1, height),
        (width + 1, 3, 1, height),
    ] {
        picture.fill(area.part(x, y, width, height), colour, 150);
    }
}

/// Returns which arms a box-drawing character has (left, right, up, down), and its
/// thickness. Double lines are drawn thick, and dashed ones solid.
fn arms(character: char) -> Option<([bool; 4], usize)> {
    const THIN: &str = "─│┌┐└┘├┤┬┴┼╭╮╰╯╴╶╵╷┄┆┈┊╌╎";
    let arms = match character {
        '─' | '━' | '═' | '┄' | '┅' | '┈' | '┉' | '╌' | '╍' | '╼' | '╾' => {
            "lr"
        }
        '│' | '┃' | '║' | '┆' | '┇' | '┊' | '┋' | '╎' | '╏' | '╽' | '╿' => {
            "ud"
        }
        '┌' | '┏' | '╔' | '╭' => "rd",
        '┐' | '┓' | '╗' | '╮' => "ld",
        '└' | '┗' | '╚' | '╰' => "ru",
        '┘' | '┛' | '╝' | '╯' => "lu",
        '├' | '┣' | '╠' => "rud",
        '┤' | '┫' | '╣' => "lud",
        '┬' | '┳' | '╦' => "lrd",
        '┴' | '┻' | '╩' => "lru",
        '┼' | '╋' | '╬' => "lrud",
        '╴' | '╸' => "l",
        '╶' | '╺' => "r",
        '╵' | '╹' => "u",
        '╷' | '╻' => "d",
        _ => return None,
    };
    let thickness = if THIN.contains(character) { 1 } else { 3 };
    Some((
        ['l', 'r', 'u', 'd'].map(|arm| arms.contains(arm)),
        thickness,
    ))
}

fn draw_lines(picture: &mut Picture, character: char, area: Area, colour: Rgb) {
    let Some(([left, right, up, down], thickness)) = arms(character) else {
        return draw_missing_glyph(picture, area, colour);
    };
    let (x, y) = ((area.width - thickness) / 2, (area.height - thickness) / 2);
    for (has, x, y, width, height) in [
        (left, 0, y, x + thickness, thickness),
        (right, x, y, area.width, thickness),
        (up, x, 0, thickness, y + thickness),
        (down, x, y, thickness, area.height),
    ] {
        if has {
            picture.fill(area.part(x, y, width, height), colour, FULL);
        }
    }
}

fn draw_block(picture: &mut Picture, character: char, area: Area, colour: Rgb) {
    let code = usize::try_from(u32::from(character)).unwrap_or(0);
    let (width, height) = (area.width, area.height);
    let below = |eighths: usize| {
        let part = (height * eighths).div_ceil(8);
        area.part(0, height - part, width, part)
    };
    let left = |eighths: usize| area.part(0, 0, (width * eighths).div_ceil(8), height);
    let (half_width, half_height) = (width / 2, height / 2);
    match code {
        0x2580 => picture.fill(area.part(0, 0, width, half_height), colour, FULL),
        0x2581..=0x2588 => picture.fill(below(code - 0x2580), colour, FULL),
        0x2589..=0x258f => picture.fill(left(0x2590 - code), colour, FULL),
        0x2590 => picture.fill(area.part(half_width, 0, width, height), colour, FULL),
        0x2591 => picture.fill(area, colour, 64),
        0x2592 => picture.fill(area, colour, 128),
        0x2593 => picture.fill(area, colour, 192),
        0x2594 => picture.fill(area.part(0, 0, width, height.div_ceil(8)), colour, FULL),
        0x2595 => picture.fill(area.part(width - width / 8, 0, width, height), colour, FULL),
        _ => {
            let [upper_left, upper_right, lower_left, lower_right] = quarters(character);
            for (has, x, y, width, height) in [
                (upper_left, 0, 0, half_width, half_height),
                (upper_right, half_width, 0, width, half_height),
                (lower_left, 0, half_height, half_width, height),
                (lower_right, half_width, half_height, width, height),
            ] {
                if has {
                    picture.fill(area.part(x, y, width, height), colour, FULL);
                }
            }
        }
    }
}

/// Returns which quarters are filled: upper left, upper right, lower left, lower
/// right.
fn quarters(character: char) -> [bool; 4] {
    match character {
        '▖' => [false, false, true, false],
        '▗' => [false, false, false, true],
        '▘' => [true, false, false, false],
        '▙' => [true, false, true, true],
        '▚' => [true, false, false, true],
        '▛' => [true, true, true, false],
        '▜' => [true, true, false, true],
        '▝' => [false, true, false, false],
        '▞' => [false, true, true, false],
        _ => [false, true, true, true],
    }
}

/// Draws Braille: eight dots, a bit of the code point each.
fn draw_braille(picture: &mut Picture, character: char, area: Area, colour: Rgb) {
    const DOTS: [(usize, usize); 8] = [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
        (0, 3),
        (1, 3),
    ];
    let bits = u32::from(character);
    for (bit, (column, row)) in DOTS.into_iter().enumerate() {
        if bits >> bit & 1 == 1 {
            let x = column * area.width / 2 + area.width / 4 - 1;
            let y = row * area.height / 4 + area.height / 8 - 1;
            picture.fill(area.part(x, y, 2, 2), colour, FULL);
        }
    }
}
