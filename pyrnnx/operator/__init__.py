"""Recurrent operators: attributes, conventions of axes and gates, and checks of arguments."""
