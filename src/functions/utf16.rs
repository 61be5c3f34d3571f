//! Java's view of a text: UTF-16 units. Only for functions whose results show it.

/// The number of UTF-16 units.
pub(super) fn len(s: &str) -> usize {
    if s.is_ascii() {
        return s.len();
    }
    s.chars().map(char::len_utf16).sum()
}

/// Appends the first `units` UTF-16 units of `s`; returns how many there were. Half a surrogate pair
/// becomes `?`, as when Java encodes it.
pub(super) fn push_prefix(s: &str, units: usize, out: &mut String) -> usize {
    if s.is_ascii() {
        let n = units.min(s.len());
        out.push_str(&s[..n]);
        return n;
    }
    let mut taken = 0;
    for c in s.chars() {
        match units - taken {
            0 => break,
            1 if c.len_utf16() == 2 => {
                out.push('?');
                return units;
            }
            _ => out.push(c),
        }
        taken += c.len_utf16();
    }
    taken
}
