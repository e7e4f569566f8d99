"""What tokens cost: a dated table of prices, the user's own prices over it, and exact sums in whole nano-dollars.

Imports nothing but the standard library, and reads the table only when a price is asked for.
"""

from __future__ import annotations

from clew.pricing.table import PriceTable as PriceTable
from clew.pricing.table import prices as prices
