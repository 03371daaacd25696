/// The most ports of one range.
const MAX_PORTS: u16 = 1000;

/// Returns the ports of `80`, `53/udp` or `8000-8002`, each as `PORT/PROTOCOL`.
pub(crate) fn parse_ports(text: &str) -> Result<Vec<String>, String> {
    let bad = || format!("{text:?} is no port: expected 80, 80/udp or 8000-8002");
    let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = protocol.to_ascii_lowercase();
    if !matches!(protocol.as_str(), "tcp" | "udp" | "sctp") {
        return Err(bad());
    }
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let number = |text: &str| text.parse::<u16>().map_err(|_| bad());
    let (first, last) = (number(first)?, number(last)?);
    if first == 0 || last < first || last - first >= MAX_PORTS {
        return Err(bad());
    }
    Ok((first..=last)
        .map(|port| format!("{port}/{protocol}"))
        .collect())
}
