//! Opens logs whose files were damaged at random: never a panic, never a hang, what was read
//! and appended stays, and what no group had acknowledged comes.

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::{Mode, OnDamage};
use edgelog_fuzz::{corpus, mutate, probe};

fn main() {
    edgelog_fuzz::run("images", |rng| {
        let (mut image, notes) = corpus::log(rng);
        let strict = mutate::image(rng, &mut image);
        let sys = FaultySys::from_image(image);
        if rng.percent(50) {
            sys.reboot();
        }
        let mut options = corpus::manual();
        if rng.percent(20) {
            options.mode = Mode::ReadOnly;
        }
        if rng.percent(20) {
            options.on_damage = OnDamage::Refuse;
        }
        probe::log(rng, &sys, &options, &notes.damaged(), strict);
    });
}
