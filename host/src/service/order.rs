//! The order in which services that need each other are started: a topological
//! sort. Pure.

use std::collections::BTreeMap;

use super::ServiceError;

/// How far the depth-first search is with a service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    NotVisited,
    /// On the current path.
    OnPath,
    Done,
}

/// Returns the indexes of services in an order in which each comes after all
/// that it needs. Otherwise the order of the list is kept. Ignores needs that
/// are not in the list.
pub(super) fn sort(services: &[(&str, Vec<&str>)]) -> Result<Vec<usize>, ServiceError> {
    let mut indexes = BTreeMap::new();
    for (index, (name, _)) in services.iter().enumerate() {
        if indexes.insert(*name, index).is_some() {
            let name = (*name).to_owned();
            return Err(ServiceError::DuplicateName { name });
        }
    }
    let mut visits = vec![Visit::NotVisited; services.len()];
    let mut order = Vec::new();
    for index in 0..services.len() {
        // The path of services, each with the number of its needs visited so
        // far: a list instead of recursion, because it may be as long as the
        // list of services.
        let mut path = Vec::new();
        if visits[index] == Visit::NotVisited {
            visits[index] = Visit::OnPath;
            path.push((index, 0));
        }
        while let Some((index, visited)) = path.last_mut() {
            let Some(need) = services[*index].1.get(*visited) else {
                visits[*index] = Visit::Done;
                order.push(*index);
                path.pop();
                continue;
            };
            *visited += 1;
            let Some(&need) = indexes.get(need) else {
                continue;
            };
            match visits[need] {
                Visit::Done => {}
                Visit::NotVisited => {
                    visits[need] = Visit::OnPath;
                    path.push((need, 0));
                }
                Visit::OnPath => {
                    let cycle = path.iter().skip_while(|(index, _)| *index != need);
                    let mut path: Vec<String> = cycle
                        .map(|(index, _)| services[*index].0.to_owned())
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
        let order = sort(services)?;
        Ok(order
            .into_iter()
            .map(|index| services[index].0.to_owned())
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
        assert_eq!(error, ServiceError::DuplicateName { name });
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
        let order = sort(&services).unwrap();
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
                .map(|(index, needs)| {
                    let needs = needs.iter().map(|need| all[*need].as_str()).collect();
                    (all[index].as_str(), needs)
                })
                .collect();
            let needs_of = |name: &str| {
                let found = services.iter().find(|(other, _)| *other == name);
                found.map(|(_, needs)| needs.clone()).unwrap_or_default()
            };
            match names(&services) {
                Ok(order) => {
                    prop_assert_eq!(order.len(), services.len());
                    for (index, name) in order.iter().enumerate() {
                        for need in needs_of(name) {
                            let listed = services.iter().any(|(other, _)| *other == need);
                            let before = order[..index].iter().any(|other| other == need);
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
