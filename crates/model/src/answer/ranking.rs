//! What a ranking of systems for an application lets one choose.

use super::{ApplicationRanking, RankedSystem};

/// Risk of missing a deadline above which a system does not keep it.
const RISK_MAX: f64 = 0.05;

impl ApplicationRanking {
    /// Whether prices were given.
    pub fn has_prices(&self) -> bool {
        self.systems.iter().any(|system| system.price.is_some())
    }

    /// The cheapest system that keeps the deadline with 95 % certainty.
    pub fn cheapest_in_time(&self) -> Option<&RankedSystem> {
        let keeps = |system: &&RankedSystem| {
            system.price.is_some() && system.deadline_risk.is_some_and(|risk| risk <= RISK_MAX)
        };
        let price = |system: &RankedSystem| system.price.unwrap_or(f64::MAX);
        self.systems.iter().filter(keeps).min_by(|a, b| price(a).total_cmp(&price(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    fn system(record: &str, price: Option<f64>, deadline_risk: f64) -> RankedSystem {
        RankedSystem {
            record: record.to_owned(),
            seconds: Figure::default(),
            verdict: "alike".to_owned(),
            price,
            deadline_risk: Some(deadline_risk),
        }
    }

    #[test]
    fn the_cheapest_is_among_those_that_keep_the_deadline() {
        let systems = vec![
            system("fast", Some(900.0), 0.001),
            system("fair", Some(400.0), 0.05),
            system("slow", Some(100.0), 0.051),
            system("unpriced", None, 0.0),
        ];
        let mut ranking = ApplicationRanking { app: String::new(), systems };
        assert!(ranking.has_prices());
        assert_eq!(ranking.cheapest_in_time().unwrap().record, "fair");
        ranking.systems.drain(..2);
        assert_eq!(ranking.cheapest_in_time(), None);
        ranking.systems.remove(0);
        assert!(!ranking.has_prices());
    }
}
