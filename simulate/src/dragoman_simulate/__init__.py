"""`dragoman simulate`: replays traffic against a model of engine pods, under our autoscaler and its peers' rules.

Of the operator it imports the pure decision alone (`dragoman_operator.autoscaling.decision`), so a replay runs the very
code that runs in a cluster.
"""
