//! Native tests of workflows.
use crate::failure::Failure;
use crate::http::{Request, Response};

pub(crate) fn answer_request(request: &Request) -> Result<Response, Failure> {
    panic!("{}: HTTP is there in a component only", request.name())
}
