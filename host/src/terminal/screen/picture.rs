use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::{
    cell::Cell,
    glyphs,
    palette::{BACKGROUND, FOREGROUND, Rgb, blend, colours},
    reducer::Reducer,
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

/// How many pixels a picture has at most: 64 MiB of memory.
const MAX_PIXELS: usize = 16 << 20;

impl Screen {
    /// Renders the screen to pixels: light on dark, with colours, styles and the
    /// cursor. European letters, lines, blocks and Braille are drawn; other
    /// characters become empty boxes, since the embedded font lacks them.
    /// [`Screen::to_svg`] has no such limit.
    ///
    /// A picture takes at most 64 MiB: a screen of more than about 90,000 cells is
    /// drawn at half of its size, a third, or a fourth.
    pub fn to_picture(&self) -> Picture {
        let width = usize::from(self.size.columns) * WIDTH + 2 * MARGIN;
        let height = self.rows.len() * HEIGHT + 2 * MARGIN;
        match reduction(width, height) {
            1 => self.draw_whole(width, height),
            factor => self.draw_reduced(width, height, factor),
        }
    }

    pub(super) fn draw_whole(&self, width: usize, height: usize) -> Picture {
        let mut picture = Picture::filled(width, height);
        for row in 0..self.rows.len() {
            picture.draw_row(self, row, row * HEIGHT + MARGIN);
        }
        picture
    }

    /// Draws one row at a time, so that the whole picture is never in memory.
    pub(super) fn draw_reduced(&self, width: usize, height: usize, factor: usize) -> Picture {
        let mut reducer = Reducer::new(width, height, factor);
        let margin = Picture::filled(width, MARGIN);
        reducer.push(&margin);
        for row in 0..self.rows.len() {
            let mut picture = Picture::filled(width, HEIGHT);
            picture.draw_row(self, row, 0);
            reducer.push(&picture);
        }
        reducer.push(&margin);
        reducer.picture
    }
}

/// Returns by which factor a picture of this size is reduced.
pub(super) fn reduction(width: usize, height: usize) -> usize {
    let fits = |factor: &usize| (width / factor) * (height / factor) <= MAX_PIXELS;
    (1..).find(fits).unwrap_or(usize::MAX)
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
    /// Returns the area of adjacent cells in a row that begins at line `y`.
    fn of_cells(column: usize, y: usize, columns: usize) -> Self {
        Self {
            x: column * WIDTH + MARGIN,
            y,
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
    pub(super) fn filled(width: usize, height: usize) -> Self {
        let [red, green, blue] = BACKGROUND;
        let pixel = [red, green, blue, u8::MAX];
        Self {
            width,
            height,
            rgba: pixel.repeat(width * height),
        }
    }

    /// Draws a row of a screen, with its first line at `y`.
    fn draw_row(&mut self, screen: &Screen, number: usize, y: usize) {
        let Some(row) = screen.rows.get(number) else {
            return;
        };
        for (column, cell) in row.cells().iter().enumerate() {
            self.draw(cell, column, y);
        }
        let rest = colours(Style::blank(row.tail_colour())).1;
        if rest != BACKGROUND {
            let used = row.cells().len();
            let missing = usize::from(screen.size.columns).saturating_sub(used);
            self.fill(Area::of_cells(used, y, missing), rest, u8::MAX);
        }
        if screen.cursor.visible && usize::from(screen.cursor.row) == number {
            let area = Area::of_cells(screen.cursor.column.into(), y, 1);
            self.fill(area, FOREGROUND, 128);
        }
    }

    fn draw(&mut self, cell: &Cell, column: usize, y: usize) {
        if cell.columns() == 0 {
            return;
        }
        let (foreground, background) = colours(cell.style);
        let area = Area::of_cells(column, y, cell.columns());
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
