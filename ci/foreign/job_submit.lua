-- What this site insists on when a job is submitted.
function slurm_job_submit(job, partitions, uid)
   if job.account == nil or job.account == "" then
      slurm.log_user("kestrel: name the project that pays: --account=net or --account=chem")
      return 2045 -- ESLURM_INVALID_ACCOUNT
   end
   if job.partition == "shared" and job.shared == 0 then
      slurm.log_user("kestrel: nodes of partition shared are shared: submit without --exclusive")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
