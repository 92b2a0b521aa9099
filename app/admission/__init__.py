"""The wire of AdmissionReview and the rules from a verdict to an answer; pure."""
