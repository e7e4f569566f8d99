"""One module or package per agent, behind one protocol. Agents never import each other."""
