use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::{
    cell::Cell,
    glyphs,
    palette::{BACKGROUND, FOREGROUND, Rgb, blend, colours},
    snapshot::Screen,
    style::Style,
};

/// An image of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The width in pixels.
    pub width: usize,
    /// The height in pixels.
    pub height: usize,
    /// Red, green, blue and alpha of each pixel, line by line from the top.
    pub rgba: Vec<u8>,
}

const SIZE: RasterHeight = RasterHeight::Size20;

/// The size of a cell in pixels.
const WIDTH: usize = get_raster_width(FontWeight::Regular, SIZE);
const HEIGHT: usize = SIZE.val();

/// The margin around the screen in pixels.
const MARGIN: usize = 12;

impl Screen {
    /// Renders the screen to pixels: light on dark, with colours, styles and the
    /// cursor. European letters, lines, blocks and Braille are drawn; other
    /// characters become empty boxes, since the embedded font lacks them.
    /// [`Screen::to_svg`] has no such limit.
    ///
    /// It takes about 900 bytes for each cell of the screen.
    pub fn to_picture(&self) -> Picture {
        let columns = usize::from(self.size.columns);
        let mut picture = Picture::filled(
            columns * WIDTH + 2 * MARGIN,
            self.rows.len() * HEIGHT + 2 * MARGIN,
        );
        for (number, row) in self.rows.iter().enumerate() {
            let used = row.cells().len();
            for (column, cell) in row.cells().iter().enumerate() {
                picture.draw(cell, column, number);
            }
            let rest = colours(Style::blank(row.tail_colour())).1;
            if rest != BACKGROUND {
                let area = Area::of_cells(used, number, columns.saturating_sub(used));
                picture.fill(area, rest, u8::MAX);
            }
        }
        if self.cursor.visible {
            let area = Area::of_cells(self.cursor.column.into(), self.cursor.row.into(), 1);
            picture.fill(area, FOREGROUND, 128);
        }
        picture
    }
}

/// A rectangle of pixels.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// Returns the area of adjacent cells in a row.
    fn of_cells(column: usize, row: usize, columns: usize) -> Self {
        Self {
            x: column * WIDTH + MARGIN,
            y: row * HEIGHT + MARGIN,
            width: columns * WIDTH,
            height: HEIGHT,
        }
    }

    /// Returns a part of it, relative to its upper left corner.
    pub(super) fn part(&self, x: usize, y: usize, width: usize, height: usize) -> Self {
        Self {
            x: self.x + x,
            y: self.y + y,
            width: width.min(self.width.saturating_sub(x)),
            height: height.min(self.height.saturating_sub(y)),
        }
    }
}

impl Picture {
    fn filled(width: usize, height: usize) -> Self {
        let [red, green, blue] = BACKGROUND;
        let pixel = [red, green, blue, u8::MAX];
        Self {
            width,
            height,
            rgba: pixel.repeat(width * height),
        }
    }

    fn draw(&mut self, cell: &Cell, column: usize, row: usize) {
        if cell.columns() == 0 {
            return;
        }
        let (foreground, background) = colours(cell.style);
        let area = Area::of_cells(column, row, cell.columns());
        if background != BACKGROUND {
            self.fill(area, background, u8::MAX);
        }
        if cell.style.hidden {
            return;
        }
        if !cell.is_blank() {
            self.draw_character(cell, area, foreground);
        }
        if cell.style.underline {
            self.fill(area.part(0, HEIGHT - 2, area.width, 1), foreground, u8::MAX);
        }
        if cell.style.struck {
            self.fill(area.part(0, HEIGHT / 2, area.width, 1), foreground, u8::MAX);
        }
    }

    fn draw_character(&mut self, cell: &Cell, area: Area, colour: Rgb) {
        if glyphs::draw(self, cell.character(), area, colour) {
            return;
        }
        let weight = match cell.style.bold {
            true => FontWeight::Bold,
            false => FontWeight::Regular,
        };
        let Some(letter) = get_raster(cell.character(), weight, SIZE) else {
            return glyphs::draw_missing_glyph(self, area, colour);
        };
        for (y, line) in letter.rows().enumerate() {
            // Italics are approximated by slanting the letters.
            let shift = match cell.style.italic {
                true => HEIGHT.saturating_sub(y + 4) / 5,
                false => 0,
            };
            for (x, alpha) in line.iter().enumerate() {
                self.fill(area.part(x + shift, y, 1, 1), colour, *alpha);
            }
        }
    }

    /// Blends a colour over an area. `alpha` is in 255ths.
    pub(super) fn fill(&mut self, area: Area, colour: Rgb, alpha: u8) {
        if alpha == 0 {
            return;
        }
        let lines = self.rgba.chunks_exact_mut(self.width * 4);
        for line in lines.skip(area.y).take(area.height) {
            let pixels = line.as_chunks_mut::<4>().0.iter_mut();
            for [red, green, blue, _] in pixels.skip(area.x).take(area.width) {
                [*red, *green, *blue] = blend(colour, [*red, *green, *blue], alpha);
            }
        }
    }
}
