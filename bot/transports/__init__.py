"""Networks people chat on, behind one port (base.py), served by one delivery engine (delivery.py)."""
