"""Where a lane's commands run: one module per executor behind one Protocol."""
