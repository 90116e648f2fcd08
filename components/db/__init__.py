"""Where migrations of projects import fields from that were written before the fields moved: these paths stay."""
