use super::{screen, size};
use crate::terminal::screen::{Emulator, Screen, picture::reduction};

/// A screen with nearly every kind of character and style.
fn colourful() -> Screen {
    let mut text =
        String::from("\x1b]0;<script>&\"'\x07\x1b[1;31mbold\x1b[0m \x1b[7mreverse\x1b[0m ");
    text += "\x1b[3;4;9mall\x1b[0m \x1b[48;5;22m漢字\x1b[K\r\n\x1b[0m<a href='x'>&amp;]]>\u{ffff}é\u{301}";
    text += "─┼╔▀▄█░▖⠿☃\x1b[2mdim\x1b[8mhidden";
    screen(60, 3, text)
}

#[test]
fn an_svg_is_xml_whatever_is_on_the_screen() {
    let screen = colourful();
    let svg = screen.to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let allowed = ["svg", "title", "rect", "g", "text"];
    for element in document.descendants().filter(|node| node.is_element()) {
        assert!(allowed.contains(&element.tag_name().name()), "{element:?}");
    }
    let mut nodes = document.descendants();
    let title = nodes.find(|node| node.tag_name().name() == "title");
    assert_eq!(title.unwrap().text(), Some("<script>&\"'"));
    let texts: String = document
        .descendants()
        .filter(|node| node.tag_name().name() == "text" && node.is_element())
        .filter_map(|node| node.text())
        .collect();
    assert!(texts.contains("<ahref='x'>&amp;]]>"), "{texts}");
    assert!(texts.contains("漢") && texts.contains("é\u{301}"));
    assert!(!texts.contains("hidden"));
}

#[test]
fn an_svg_puts_every_character_into_its_column() {
    let svg = screen(20, 2, "a漢b\x1b[1mc").to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let placed: Vec<_> = document
        .descendants()
        .filter(|node| node.is_element() && node.tag_name().name() == "text")
        .map(|node| {
            (
                node.attribute("x").unwrap(),
                node.attribute("textLength").unwrap(),
                node.text().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        placed,
        [
            ("0", "9", "a"),
            ("9", "18", "漢"),
            ("27", "9", "b"),
            ("36", "9", "c")
        ]
    );
}

#[test]
fn a_png_is_read_by_others_and_has_the_same_pixels() {
    let picture = colourful().to_picture();
    assert_eq!(picture.rgba.len(), picture.width * picture.height * 4);
    let png = picture.to_png();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(usize::try_from(info.width).unwrap(), picture.width);
    assert_eq!(usize::try_from(info.height).unwrap(), picture.height);
    assert_eq!(info.color_type, png::ColorType::Rgba);
    assert!(pixels == picture.rgba);
}

#[test]
fn a_picture_shows_text_and_colours() {
    let pixels = |printed: &str| {
        screen(4, 1, format!("\x1b[?25l{printed}"))
            .to_picture()
            .rgba
    };
    let has = |printed: &str, colour: [u8; 3]| {
        pixels(printed).chunks(4).any(|pixel| pixel[..3] == colour)
    };
    assert_ne!(pixels("a"), pixels("b"));
    assert_ne!(pixels("a"), pixels("\x1b[1ma"));
    assert_ne!(pixels("a"), pixels("\x1b[3ma"));
    assert_ne!(pixels("a"), pixels("\x1b[4ma"));
    assert_ne!(pixels("│"), pixels("─"));
    assert_eq!(pixels("\x1b[8ma"), pixels(""));
    assert!(has("\x1b[38;2;1;200;3m█", [1, 200, 3]));
    assert!(has("\x1b[48;2;1;200;3m \x1b[0m", [1, 200, 3]));
    assert!(has("\x1b[48;2;1;200;3m\x1b[K", [1, 200, 3]));
}

#[test]
fn every_line_block_and_dot_can_be_drawn_everywhere() {
    for code in (0x2500..=0x259fu32).chain(0x2800..=0x28ff) {
        let character = char::from_u32(code).unwrap();
        let picture = screen(1, 1, format!("\x1b[?25l{character}")).to_picture();
        let seen = picture
            .rgba
            .chunks(4)
            .any(|pixel| pixel != &picture.rgba[..4]);
        assert_eq!(seen, character != '\u{2800}', "{character}");
    }
}

#[test]
fn a_picture_of_the_largest_screen_takes_little_memory() {
    let (width, height) = (1000 * 10 + 24, 1000 * 20 + 24);
    let factor = reduction(width, height);
    assert!(width / factor * (height / factor) * 4 <= 64 << 20);
    assert!(factor <= 4);
    assert_eq!(reduction(300 * 10, 100 * 20), 1);
}

#[test]
fn a_reduced_picture_shows_the_same() {
    let screen = colourful();
    let whole = screen.to_picture();
    for factor in [2, 3, 4] {
        let reduced = screen.draw_reduced(whole.width, whole.height, factor);
        let (width, height) = (whole.width / factor, whole.height / factor);
        assert_eq!((reduced.width, reduced.height), (width, height));
        for y in 0..height {
            for x in 0..width {
                let at = |x: usize, y: usize, width: usize| (y * width + x) * 4;
                let pixels = (0..factor * factor).map(|pixel| {
                    let (x, y) = (x * factor + pixel % factor, y * factor + pixel / factor);
                    &whole.rgba[at(x, y, whole.width)..][..3]
                });
                let sums = pixels.fold([0usize; 3], |[red, green, blue], pixel| {
                    let [r, g, b] = [0, 1, 2].map(|part| usize::from(pixel[part]));
                    [red + r, green + g, blue + b]
                });
                let mean = sums.map(|sum| u8::try_from(sum / factor / factor).unwrap());
                assert_eq!(reduced.rgba[at(x, y, width)..][..3], mean);
            }
        }
    }
}

#[test]
fn an_svg_of_a_large_screen_is_bounded_and_has_its_text() {
    let mut emulator = Emulator::new(size(1000, 200), 0);
    let cells: String = (0..200_000)
        .map(|cell| format!("\x1b[38;2;{};0;0;48;2;0;{};1m&", cell % 251, cell % 241))
        .collect();
    emulator.feed(cells.as_bytes());
    let svg = emulator.screen().to_svg();
    assert!(svg.len() <= 32 << 20, "{}", svg.len());
    let document = roxmltree::Document::parse(&svg).unwrap();
    let rows = document.descendants().filter(|node| node.is_text());
    assert_eq!(rows.count(), 200);
    assert_eq!(svg.matches("&amp;").count(), 200_000);
    // A smaller screen keeps its styles.
    let svg = screen(300, 100, &cells[..300_000]).to_svg();
    assert!(svg.contains("#7b0000"));
}
