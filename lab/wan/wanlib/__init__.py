"""What the commands of lab/wan share.

  errors.py      refusals, told in one line
  matrix.py      what the network is to be like: sites, and the rules between them
  netns.py       network namespaces
  process.py     processes of a lab: started such that they end with it
  place.py       folders, locks, the state file; which labs there are; leftovers of those that died
  control.py     the switch's control socket
  agents.py      an agent and the sample application at each site
  supervisor.py  the process that holds a lab together
  command.py     arguments that several commands have

docs/lab-wan.md is for users. Python 3.11 and its standard library, and yaml.
"""
