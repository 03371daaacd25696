//! Command lines as a shell splits them.

/// Splits a line into commands, and these into words. Understands as much of the syntax as the examples use: quotes,
/// pipes, lists, redirections and comments.
pub(crate) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    // `None` between words.
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut is_redirection = false;
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (Some(end), _) if end == character => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '>' | '<' | '(' | ')') => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut is_redirection)
                {
                    commands.last_mut().unwrap().push(word);
                }
                match character {
                    '>' | '<' => is_redirection = true,
                    ' ' => {}
                    _ => commands.push(Vec::new()),
                }
            }
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

#[test]
fn lines_are_split_as_a_shell_splits_them() {
    let split = |line| {
        commands(line)
            .iter()
            .map(|words| words.join("_"))
            .collect::<Vec<_>>()
    };
    assert_eq!(split("a 'b c' d=\"e f\" # g"), ["a_b c_d=e f"]);
    assert_eq!(
        split("a -- sh -c 'b | c' > d | e && f"),
        ["a_--_sh_-c_b | c", "e", "f"]
    );
    assert_eq!(split("# a"), [""; 0]);
}
