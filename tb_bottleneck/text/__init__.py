"""What a person reads outside the tab: documents about reports, comparisons, trees and reviews, for terminals and
HTML."""
