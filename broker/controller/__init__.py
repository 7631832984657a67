"""The controller: election, partition and replica states, assignment, topic administration."""
