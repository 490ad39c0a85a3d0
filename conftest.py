"""What every test run says of itself."""
