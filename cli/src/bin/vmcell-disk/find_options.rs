//! The options of find(1) with a single dash, as people type them.

use std::ffi::OsString;

/// How an option of find(1) is written here.
enum Spelling {
    /// An option without a value.
    Flag(&'static str),
    /// An option whose value is the next word.
    Value(&'static str),
    /// What happens anyway.
    Nothing,
}

/// Returns a command line with the options of `find` in the spelling of this
/// program. Command lines of other commands are returned unchanged.
pub(crate) fn normalize(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut normalized: Vec<_> = words.by_ref().take(2).collect();
    if normalized.get(1).is_none_or(|command| command != "find") {
        normalized.extend(words);
        return normalized;
    }
    while let Some(word) = words.next() {
        match word.to_str().and_then(spelling) {
            None => normalized.push(word),
            Some(Spelling::Nothing) => {}
            Some(Spelling::Flag(option)) => normalized.push(option.into()),
            Some(Spelling::Value(option)) => {
                normalized.push(option.into());
                normalized.extend(words.next());
            }
        }
    }
    normalized
}

fn spelling(word: &str) -> Option<Spelling> {
    Some(match word {
        "-name" => Spelling::Value("--name"),
        "-iname" => Spelling::Value("--iname"),
        "-type" => Spelling::Value("--type"),
        "-size" => Spelling::Value("--size"),
        "-newermt" => Spelling::Value("--newer"),
        "-maxdepth" => Spelling::Value("--depth"),
        "-ls" => Spelling::Flag("--long"),
        "-print0" => Spelling::Flag("--print0"),
        "-print" => Spelling::Nothing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(line: &str) -> String {
        let words = normalize(line.split(' ').map(OsString::from));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_single_dash_is_enough_for_find() {
        assert_eq!(
            normalized("vmcell-disk find a.img /var -name *.log -maxdepth 2 -type f -print"),
            "vmcell-disk find a.img /var --name *.log --depth 2 --type f"
        );
        // The word after an option is its value, whatever it looks like.
        assert_eq!(
            normalized("vmcell-disk find a.img -name -print -print0"),
            "vmcell-disk find a.img --name -print --print0"
        );
        let others = "vmcell-disk ls a.img -name -print";
        assert_eq!(normalized(others), others);
    }
}
