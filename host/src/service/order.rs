//! In which order services are started that need each other. Pure.

use std::collections::BTreeMap;

use super::ServiceError;

/// A service, by its place in the caller's list, and how far we are with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    /// It is on the path that is being followed.
    Open,
    Done,
}

/// Puts services in an order in which each comes after all that it needs. Of
/// those that are free to be anywhere, the first of the list comes first. Needs
/// that are not in the list are none of our business here.
pub(super) fn by_needs(services: &[(&str, Vec<&str>)]) -> Result<Vec<usize>, ServiceError> {
    let mut places = BTreeMap::new();
    for (place, (name, _)) in services.iter().enumerate() {
        if places.insert(*name, place).is_some() {
            let name = (*name).to_owned();
            return Err(ServiceError::Twice { name });
        }
    }
    let mut marks = vec![Mark::New; services.len()];
    let mut order = Vec::new();
    for place in 0..services.len() {
        // A path of services and of how many of its needs each has seen: a
        // list, because it may be as long as the list of all.
        let mut path = Vec::new();
        if marks[place] == Mark::New {
            marks[place] = Mark::Open;
            path.push((place, 0));
        }
        while let Some((place, seen)) = path.last_mut() {
            let Some(need) = services[*place].1.get(*seen) else {
                marks[*place] = Mark::Done;
                order.push(*place);
                path.pop();
                continue;
            };
            *seen += 1;
            let Some(&need) = places.get(need) else {
                continue;
            };
            match marks[need] {
                Mark::Done => {}
                Mark::New => {
                    marks[need] = Mark::Open;
                    path.push((need, 0));
                }
                Mark::Open => {
                    let circle = path.iter().skip_while(|(place, _)| *place != need);
                    let mut path: Vec<String> = circle
                        .map(|(place, _)| services[*place].0.to_owned())
                        .collect();
                    path.push(services[need].0.to_owned());
                    return Err(ServiceError::Cycle { path });
                }
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(services: &[(&str, Vec<&str>)]) -> Result<Vec<String>, ServiceError> {
        let order = by_needs(services)?;
        Ok(order
            .into_iter()
            .map(|place| services[place].0.to_owned())
            .collect())
    }

    #[test]
    fn each_comes_after_what_it_needs_and_else_as_in_the_list() {
        let services = [
            ("web", vec!["api", "cache"]),
            ("log", vec![]),
            ("api", vec!["db", "elsewhere"]),
            ("cache", vec![]),
            ("db", vec![]),
        ];
        assert_eq!(
            names(&services).unwrap(),
            ["db", "api", "cache", "web", "log"]
        );
        assert_eq!(names(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_told_by_its_names_alone() {
        let services = [
            ("front", vec!["web"]),
            ("web", vec!["log", "api"]),
            ("api", vec!["db"]),
            ("db", vec!["web"]),
            ("log", vec![]),
        ];
        let error = names(&services).unwrap_err();
        let path = ["web", "api", "db", "web"].map(str::to_owned).to_vec();
        assert_eq!(error, ServiceError::Cycle { path });
        assert!(error.to_string().contains("web -> api -> db -> web"));
        let alone = names(&[("web", vec!["web"])]).unwrap_err();
        assert!(alone.to_string().contains("web -> web"), "{alone}");
    }

    #[test]
    fn two_of_a_name_are_refused() {
        let error = names(&[("web", vec![]), ("web", vec![])]).unwrap_err();
        let name = "web".to_owned();
        assert_eq!(error, ServiceError::Twice { name });
    }

    #[test]
    fn a_long_chain_is_no_deep_one() {
        let all: Vec<String> = (0..50_000).map(|number| format!("s{number}")).collect();
        let services: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let need = all.get(number + 1).map(String::as_str);
                (name.as_str(), need.into_iter().collect())
            })
            .collect();
        let order = by_needs(&services).unwrap();
        assert!(order.iter().rev().copied().eq(0..50_000));
    }

    proptest! {
        #[test]
        fn an_order_keeps_all_needs_and_a_circle_is_one(
            needs in prop::collection::vec(prop::collection::vec(0_usize..8, 0..4), 1..8)
        ) {
            let all: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
            let services: Vec<(&str, Vec<&str>)> = needs
                .iter()
                .enumerate()
                .map(|(place, needs)| {
                    let needs = needs.iter().map(|need| all[*need].as_str()).collect();
                    (all[place].as_str(), needs)
                })
                .collect();
            let needs_of = |name: &str| {
                let found = services.iter().find(|(other, _)| *other == name);
                found.map(|(_, needs)| needs.clone()).unwrap_or_default()
            };
            match names(&services) {
                Ok(order) => {
                    prop_assert_eq!(order.len(), services.len());
                    for (place, name) in order.iter().enumerate() {
                        for need in needs_of(name) {
                            let listed = services.iter().any(|(other, _)| *other == need);
                            let before = order[..place].iter().any(|other| other == need);
                            prop_assert!(before || !listed);
                        }
                    }
                }
                Err(ServiceError::Cycle { path }) => {
                    prop_assert_eq!(path.first(), path.last());
                    prop_assert!(path.len() >= 2);
                    for pair in path.windows(2) {
                        prop_assert!(needs_of(&pair[0]).contains(&pair[1].as_str()));
                    }
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
