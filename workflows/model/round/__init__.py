"""Values of optimization rounds: plan, lanes, tickets, trials, composition, events, views."""
