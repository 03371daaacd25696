/// Tab stops.
#[derive(Debug)]
pub(super) struct Tabs {
    stops: Vec<bool>,
}

const DEFAULT_INTERVAL: usize = 8;

impl Tabs {
    pub(super) fn new(columns: usize) -> Self {
        let mut tabs = Self { stops: Vec::new() };
        tabs.resize(columns);
        tabs
    }

    /// Changes the number of columns. New ones get the default stops.
    pub(super) fn resize(&mut self, columns: usize) {
        let new = self.stops.len()..columns;
        self.stops.truncate(columns);
        self.stops
            .extend(new.map(|column| column.is_multiple_of(DEFAULT_INTERVAL)));
    }

    pub(super) fn set(&mut self, column: usize) {
        if let Some(stop) = self.stops.get_mut(column) {
            *stop = true;
        }
    }

    pub(super) fn clear(&mut self, column: usize) {
        if let Some(stop) = self.stops.get_mut(column) {
            *stop = false;
        }
    }

    pub(super) fn clear_all(&mut self) {
        self.stops.fill(false);
    }

    /// Returns the stop that is `count` stops to the right, or the last column.
    pub(super) fn next_stop(&self, column: usize, count: usize) -> usize {
        let stops = self.stops.iter().enumerate().skip(column.saturating_add(1));
        stops
            .filter_map(|(column, stop)| stop.then_some(column))
            .nth(count.saturating_sub(1))
            .unwrap_or(self.stops.len().saturating_sub(1))
    }

    /// Returns the stop that is `count` stops to the left, or the first column.
    pub(super) fn previous_stop(&self, column: usize, count: usize) -> usize {
        let stops = self.stops.iter().enumerate().take(column).rev();
        stops
            .filter_map(|(column, stop)| stop.then_some(column))
            .nth(count.saturating_sub(1))
            .unwrap_or(0)
    }
}
