"""What `labs.release` is made of: students' and instructors' copies, the archive, and its checks."""
