use std::fmt::{self, Write};

use super::{
    cell::Cell,
    palette::{BACKGROUND, FOREGROUND, Rgb, colours},
    row::Row,
    snapshot::Screen,
    style::Style,
};

/// The size of a cell in pixels.
const WIDTH: usize = 9;
const HEIGHT: usize = 20;

/// The distance from the top of a cell to the baseline.
const BASELINE: usize = 15;

/// The margin around the screen.
const MARGIN: usize = 14;

const FONTS: &str =
    "ui-monospace,'JetBrains Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace";

/// How many bytes an SVG with styles has at most, apart from one row.
const MAX_LENGTH: usize = 32 << 20;

/// What an SVG shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Text in its styles, and backgrounds.
    Styles,
    /// Text only, with one element a row.
    Text,
}

impl Detail {
    /// Fails if an SVG with styles is too long.
    fn check(self, svg: &str) -> fmt::Result {
        match self == Self::Styles && svg.len() > MAX_LENGTH {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

impl Screen {
    /// Renders the screen as SVG: light on dark, with colours, styles and the
    /// cursor. The SVG refers to no other file.
    ///
    /// It has at most about 32 MiB: a screen of more than about 150,000 cells that
    /// all differ in style is rendered without styles.
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        if self.write_svg(&mut svg, Detail::Styles).is_err() {
            svg = String::new();
            // Only the limit of styles fails.
            let _ = self.write_svg(&mut svg, Detail::Text);
        }
        svg
    }

    /// Fails if there are too many styles.
    fn write_svg(&self, svg: &mut String, detail: Detail) -> fmt::Result {
        let columns = usize::from(self.size.columns);
        let width = columns * WIDTH + 2 * MARGIN;
        let height = self.rows.len() * HEIGHT + 2 * MARGIN;
        write!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
        )?;
        if !self.title.is_empty() {
            write!(svg, "<title>{}</title>", Escaped(&self.title))?;
        }
        let background = Hex(BACKGROUND);
        write!(
            svg,
            r#"<rect width="{width}" height="{height}" rx="10" fill="{background}"/>"#
        )?;
        write!(
            svg,
            r#"<g transform="translate({MARGIN} {MARGIN})" font-family="{FONTS}" font-size="15" xml:space="preserve" style="white-space:pre">"#
        )?;
        if detail == Detail::Styles {
            for (number, row) in self.rows.iter().enumerate() {
                write_backgrounds(svg, row, number, columns)?;
                detail.check(svg)?;
            }
        }
        if self.cursor.visible {
            let (x, y) = cell_origin(self.cursor.column.into(), self.cursor.row.into());
            let cursor = Hex(FOREGROUND);
            write!(
                svg,
                r#"<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="{cursor}" fill-opacity="0.5"/>"#
            )?;
        }
        for (number, row) in self.rows.iter().enumerate() {
            let runs = match detail {
                Detail::Styles => runs(row),
                Detail::Text => vec![plain_run(row)],
            };
            for run in runs {
                write_run(svg, &run, number)?;
            }
            detail.check(svg)?;
        }
        svg.write_str("</g></svg>\n")
    }
}

fn cell_origin(column: usize, row: usize) -> (usize, usize) {
    (column * WIDTH, row * HEIGHT)
}

/// Writes a rectangle for each run of cells with a background of its own.
fn write_backgrounds(svg: &mut String, row: &Row, number: usize, columns: usize) -> fmt::Result {
    let rest = colours(Style::blank(row.tail_colour())).1;
    let background_at = |column: usize| row.cells().get(column).map(|cell| colours(cell.style).1);
    let mut from = 0;
    while from < columns {
        let colour = background_at(from).unwrap_or(rest);
        let mut end = from + 1;
        while end < columns && background_at(end).unwrap_or(rest) == colour {
            end += 1;
        }
        if colour != BACKGROUND {
            let (x, y) = cell_origin(from, number);
            let width = (end - from) * WIDTH;
            let colour = Hex(colour);
            write!(
                svg,
                r#"<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="{colour}" shape-rendering="crispEdges"/>"#
            )?;
        }
        from = end;
    }
    Ok(())
}

/// Text that is written as one element.
struct Run {
    column: usize,
    columns: usize,
    text: String,
    style: Style,
}

/// Splits a row into runs. ASCII of one style is joined. All other characters are
/// runs of their own, so that each is in its column with any font.
fn runs(row: &Row) -> Vec<Run> {
    let mut runs = Vec::<Run>::new();
    let mut can_join = false;
    for (column, cell) in row.cells().iter().enumerate() {
        if cell.columns() == 0 || is_invisible(cell) {
            can_join = can_join && cell.columns() == 0;
            continue;
        }
        let ascii = cell.characters().all(|character| character.is_ascii());
        let last = runs.last_mut().filter(|_| can_join && ascii);
        match last.filter(|run| run.style == cell.style) {
            Some(run) => {
                cell.push_to(&mut run.text);
                run.columns += 1;
            }
            None => runs.push(Run {
                column,
                columns: cell.columns(),
                text: cell.characters().collect(),
                style: cell.style,
            }),
        }
        can_join = ascii;
    }
    runs
}

/// Returns the text of a row as one run without style.
fn plain_run(row: &Row) -> Run {
    let used = row.cells().iter().rposition(|cell| !cell.is_blank());
    Run {
        column: 0,
        columns: used.map_or(0, |last| last + 1),
        text: row.text(),
        style: Style::default(),
    }
}

fn is_invisible(cell: &Cell) -> bool {
    let has_line = cell.style.underline || cell.style.struck;
    cell.style.hidden || cell.is_blank() && !has_line
}

fn write_run(svg: &mut String, run: &Run, row: usize) -> fmt::Result {
    let (x, y) = cell_origin(run.column, row);
    let (y, width) = (y + BASELINE, run.columns * WIDTH);
    let foreground = Hex(colours(run.style).0);
    write!(
        svg,
        r#"<text x="{x}" y="{y}" textLength="{width}" lengthAdjust="spacingAndGlyphs" fill="{foreground}""#
    )?;
    if run.style.bold {
        svg.write_str(r#" font-weight="bold""#)?;
    }
    if run.style.italic {
        svg.write_str(r#" font-style="italic""#)?;
    }
    match (run.style.underline, run.style.struck) {
        (true, true) => svg.write_str(r#" text-decoration="underline line-through""#)?,
        (true, false) => svg.write_str(r#" text-decoration="underline""#)?,
        (false, true) => svg.write_str(r#" text-decoration="line-through""#)?,
        (false, false) => {}
    }
    write!(svg, ">{}</text>", Escaped(&run.text))
}

struct Hex(Rgb);

impl fmt::Display for Hex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(formatter, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// Text, escaped for XML.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&apos;")?,
                // Not allowed in XML: XML 1.0, 2.2.
                '\u{fffe}' | '\u{ffff}' => formatter.write_char(char::REPLACEMENT_CHARACTER)?,
                _ => formatter.write_char(character)?,
            }
        }
        Ok(())
    }
}
